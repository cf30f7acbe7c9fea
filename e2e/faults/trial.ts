import { setTimeout as delay } from "node:timers/promises";
import { type Platform, type Provider, providerOf } from "@herald/contracts";
import { eventually } from "@herald/testing";
import { checkInvariants, type Promised } from "../harness/invariants.ts";
import { deliveryKey } from "../harness/ledger.ts";
import { sendSurely, startLoad } from "../harness/load.ts";
import type { Project } from "../harness/project.ts";
import { seed } from "../harness/seed.ts";
import { deviceOf, payloadOf, wasAccepted } from "../harness/simulators.ts";
import type { System } from "../harness/system.ts";
import type { Findings } from "./row.ts";

export const platforms: readonly Platform[] = ["ios", "android", "web"];
export const providers: readonly Provider[] = platforms.map((platform) => providerOf[platform]);
/** Begins the push tokens of the broadcasts' audience, and of those that single sends go to. */
export const crowd = "b0b0";
export const single = "5151";
/** So that a broadcast lasts long enough to be hit in its middle. */
export const slowCrowd = [{ tokenPrefix: crowd, delayMs: 100 }];

/** How long something accepted may go without a final state once the fault is over. */
const finalWithinMs = 60_000;

export type Trial = {
  readonly project: Project;
  /** Of each platform of the audience. */
  readonly each: number;
  readonly load: ReturnType<typeof startLoad>;
  /** Everything that was answered 202. */
  promised(): Promised[];
  /** Sends to the whole audience, through 503s. */
  broadcast(): Promise<string>;
  /** Sends to these devices alone. */
  sendTo(devices: readonly string[]): Promise<string>;
  /** Something else was answered 202. */
  promise(id: string, devices: number): void;
  /** A broadcast whose first pushes have arrived. */
  broadcastUnderWay(): Promise<string>;
  /**
   * The fault is over: waits until a new send has reached its provider, and remembers how long that took. It is of a project
   * that had nothing under way, so that it tells of the system and not of what the project's own queue still waits for.
   */
  recovered(): Promise<number>;
  /** The same for the project itself, whose lanes may be full of what a dead process held, until the ack wait is over. */
  goesOn(): Promise<number>;
  /** What the ledger calls final now must not be sent again. */
  expectNoRepeatOf(notificationId: string): Promise<void>;
  note(line: string): void;
  problem(line: string): void;
  /** Ends the load, waits until everything is final, compares, and reports. */
  finish(options?: { timeoutMs?: number }): Promise<Findings>;
};

/** A project on three platforms with an audience, under load: single sends, opens and what the row adds. */
export async function startTrial(
  system: System,
  {
    each = 200,
    script = slowCrowd as readonly object[],
    perSecond = 10,
  }: { each?: number; script?: readonly object[]; perSecond?: number } = {},
): Promise<Trial> {
  await system.simulators.script(script);
  const project = await system.project("Trial", providers);
  for (const platform of platforms)
    await seed(system, project, each, { platform, prefix: crowd, topics: ["everyone"] });
  const singles = await seed(system, project, 20, { prefix: single });
  const bystander = await system.project("Bystander");
  const [probe] = await seed(system, bystander, 1, { prefix: single });
  const load = startLoad(system, project, singles, { perSecond });
  const begunAt = new Date();
  const own: Promised[] = [];
  const problems: string[] = [];
  const notes: string[] = [];
  const finalSince = new Map<string, number>();
  let recoveryMs: number | undefined;
  const crashesBefore = system.logs.crashes().length;

  const broadcast = async () => {
    const id = await sendSurely(project, { title: "To everyone", targets: ["everyone"] });
    own.push({ id, devices: each * platforms.length });
    return id;
  };
  const arrived = (id: string, since: Date) =>
    eventually(
      async () => {
        const pushes = await system.simulators.pushes({ since });
        if (!pushes.some((push) => payloadOf(push)?.notification_id === id)) throw new Error(`${id} has not arrived`);
      },
      { timeoutMs: 60_000 },
    );

  const timed = async (send: () => Promise<string>) => {
    const [from, since] = [performance.now(), new Date()];
    await arrived(await send(), since);
    return performance.now() - from;
  };

  return {
    project,
    each,
    load,
    promised: () => [...own, ...load.promised],
    broadcast,
    sendTo: async (devices) => {
      const id = await sendSurely(project, { title: "To some", targets: [...devices] });
      own.push({ id, devices: devices.length });
      return id;
    },
    promise: (id, devices) => own.push({ id, devices }),
    broadcastUnderWay: async () => {
      const since = new Date();
      const id = await broadcast();
      await arrived(id, since);
      return id;
    },
    recovered: async () => {
      const took = await timed(() =>
        sendSurely(bystander, { title: "Is anybody there?", targets: [`token:${probe?.token}`] }),
      );
      recoveryMs = Math.max(recoveryMs ?? 0, took);
      return took;
    },
    goesOn: () =>
      timed(async () => {
        const id = await sendSurely(project, { title: "Go on", targets: [`token:${singles[0]?.token}`] });
        own.push({ id, devices: 1 });
        return id;
      }),
    expectNoRepeatOf: async (id) => {
      const rows = await project.deliveries(id);
      const at = Date.now();
      for (const row of rows) if (row.status === "accepted") finalSince.set(deliveryKey(id, row.device_id), at);
    },
    note: (line) => notes.push(line),
    problem: (line) => problems.push(line),
    finish: async ({ timeoutMs = finalWithinMs } = {}) => {
      await load.stop();
      const promised = [...own, ...load.promised];
      const begun = performance.now();
      const report = await checkInvariants(system, project, promised, { timeoutMs, opened: load.opened });
      const { lost, unmarked, wrong, repeated, repeats, deliveries } = report;
      const devicesOf = new Map(promised.map(({ id, devices = 0 }) => [id, devices]));
      for (const push of await system.simulators.pushes({ since: begunAt })) {
        if (!wasAccepted(push) || !payloadOf(push)?.notification_id) continue;
        const key = deliveryKey(payloadOf(push).notification_id, deviceOf(push));
        const since = finalSince.get(key);
        if (since !== undefined && Date.parse(push.at) > since) problems.push(`${key}: was final and is sent again`);
      }
      problems.push(...wrong.slice(0, 20));
      if (wrong.length > 20) problems.push(`and ${wrong.length - 20} more that do not agree`);
      for (const status of load.reads.keys())
        if (status !== 200 && status !== 503) problems.push(`a notification that was accepted was read as ${status}`);
      // A killed process logs nothing; one that logs this ended by an error of its own.
      for (const { part, line } of system.logs.crashes().slice(crashesBefore))
        problems.push(`${part} crashed: ${line.slice(0, 500)}`);
      notes.push(`compared within ${seconds(performance.now() - begun)} of the end of the load`);
      return {
        sent: promised.reduce((sum, { devices = 0 }) => sum + devices, 0),
        final: deliveries,
        lost: lost.reduce((sum, id) => sum + (devicesOf.get(id) ?? 0), 0),
        repeated: { marked: repeated - unmarked.length, unmarked: unmarked.length },
        repeats,
        recoveryMs,
        problems, // what a row finds later is in them too
        notes,
      };
    },
  };
}

export const seconds = (ms: number): string => `${(ms / 1_000).toFixed(1)} s`;

/** A random moment within so many milliseconds. */
export const randomMoment = (maxMs: number): Promise<void> => delay(Math.random() * maxMs);
