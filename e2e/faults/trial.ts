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
/** Prefixes of push tokens: devices of broadcasts, and devices of single sends. */
export const crowd = "b0b0";
export const single = "5151";
/** Slow answers, so that a fault hits a running broadcast. */
export const slowCrowd = [{ tokenPrefix: crowd, delayMs: 100 }];

/** After the fault, accepted notifications must be final within this time. */
const finalWithinMs = 60_000;

export type Trial = {
  readonly project: Project;
  /** The number of devices of each platform. */
  readonly each: number;
  readonly load: ReturnType<typeof startLoad>;
  /** All notifications that were accepted with 202. */
  promised(): Promised[];
  /** Sends to the whole audience. Retries after a 503. */
  broadcast(): Promise<string>;
  /** Sends only to these devices. */
  sendTo(devices: readonly string[]): Promise<string>;
  /** Adds a notification that the row itself sent and Herald accepted. */
  promise(id: string, devices: number): void;
  /** Sends a broadcast and waits for its first pushes. */
  broadcastUnderWay(): Promise<string>;
  /**
   * Call it after the fault. Waits until a new send reaches its provider, and records the time. The send is of an idle project, so the
   * time measures the system and not the queue of the loaded project.
   */
  recovered(): Promise<number>;
  /** Like `recovered`, for the loaded project: messages of a dead process may fill its lanes until the ack wait ends. */
  goesOn(): Promise<number>;
  /** Deliveries that are final in the ledger now must not be sent again. */
  expectNoRepeatOf(notificationId: string): Promise<void>;
  note(line: string): void;
  problem(line: string): void;
  /** Ends the load, waits until everything is final, compares, and reports. `events: false`: the broker has lost them. */
  finish(options?: { timeoutMs?: number; events?: boolean }): Promise<Findings>;
};

/** Starts a project on three platforms under load: single sends, opens, and the broadcasts of the row. */
export async function startTrial(
  system: System,
  {
    each = 100,
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
    finish: async ({ timeoutMs = finalWithinMs, events = true } = {}) => {
      await load.stop();
      const promised = [...own, ...load.promised];
      const begun = performance.now();
      const report = await checkInvariants(system, project, promised, { timeoutMs, opened: load.opened, events });
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
      // A killed process logs nothing; this line means that a process ended with an error.
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
        problems, // the array also gets problems that the row adds later
        notes,
      };
    },
  };
}

export const seconds = (ms: number): string => `${(ms / 1_000).toFixed(1)} s`;

/** Waits for a random time of up to `maxMs`. */
export const randomMoment = (maxMs: number): Promise<void> => delay(Math.random() * maxMs);
