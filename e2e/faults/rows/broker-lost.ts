import { execFile } from "node:child_process";
import { readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { bundleOf } from "@herald/bundle";
import { eventually, operateBroker } from "@herald/testing";
import { checkInvariants } from "../../harness/invariants.ts";
import { movableClock } from "../../harness/movable-clock.ts";
import type { System } from "../../harness/system.ts";
import type { Fixture, Row } from "../row.ts";
import { seconds, startTrial } from "../trial.ts";

const run = promisify(execFile);
const root = join(import.meta.dirname, "../../..");

/** Broadcasts in progress at the loss: in expansion, in the queues, in the ledger, and waiting. */
const broadcastsOf = { long: 40, short: 20 };
/** The sweep runs after a minute, and after another for rows that were too young. In the short form the clock moves on instead. */
const finalWithinMs = 300_000;
const minute = 60_000;
/** A minute of that clock: longer than the two seconds between two sweeps. */
const minuteTakesMs = 3_000;

/** A system with a clock that moves. */
export const clocked: Fixture<{ readonly system: System; readonly clock: ReturnType<typeof movableClock> }> = {
  open: async ({ start }) => {
    const clock = movableClock();
    return { system: await start({ env: clock.env }), clock };
  },
};

/** Lets minutes pass until the returned function is called. */
export const hurry = (clock: ReturnType<typeof movableClock>) => {
  const timer = setInterval(() => clock.set(new Date(clock.now().getTime() + minute)), minuteTakesMs);
  return () => clearInterval(timer);
};

/**
 * Deletes the broker's streams, buckets and durables; log and configuration remain. The services that hold messages die too, as on one
 * machine: otherwise they would continue from memory with most of the lost messages.
 */
export async function loseData({ broker, services }: System): Promise<void> {
  await broker.kill();
  await Promise.all([services.dispatch.kill(), services.registry.kill()]);
  for (const name of await readdir(broker.dataDir))
    if (name === "jetstream") await rm(join(broker.dataDir, name), { recursive: true, force: true });
  await broker.restart();
}

/** The bootstrap step, as an operator runs it. */
export async function bootstrap({ broker, environmentOf }: System): Promise<void> {
  const env = { ...environmentOf("dispatch"), ...broker.loginOf("bootstrap"), HERALD_NATS_STORAGE: "2GiB" };
  await run(process.execPath, [bundleOf("bus")], { cwd: root, env });
}

export const brokerLost: Row = {
  name: "nats-lost",
  fault:
    "NATS loses all data during broadcasts and single sends, dispatch and registry die, bootstrap creates it again",
  pass: "what the database has ends, with exact counts; what only the broker had is gone",
  fixture: clocked,
  run: async ({ long, use }) => {
    const { system, clock } = await use(clocked);
    const broadcasts = broadcastsOf[long ? "long" : "short"];
    const trial = await startTrial(system, { each: 200 });
    await trial.broadcastUnderWay();
    await Promise.all(Array.from({ length: broadcasts }, () => trial.broadcast()));
    // Some sends may remain that dispatch has not stored, so that the row also covers sends that are lost for good.
    const hands = await operateBroker(system.broker);
    await eventually(async () => {
      const left = await hands.left("PUSH_CMD", "dispatch-start");
      if (left > broadcasts / 4) throw new Error(`${left} sends are not stored`);
    });
    await hands.close();
    const before = trial.promised().length;
    await loseData(system);
    await bootstrap(system);
    const recoveryMs = await trial.recovered();
    await system.ready();
    await trial.load.stop();

    // What is accepted after the loss is in the new broker until dispatch has stored it.
    const after = await operateBroker(system.broker);
    await eventually(
      async () => {
        const ways = [
          ["PUSH_CMD", "dispatch-start"],
          ["PUSH_SEND", "dispatch-send-groups"],
          ["PUSH_SEND", "dispatch-single-sends"],
        ] as const;
        for (const [stream, durable] of ways) {
          const left = await after.left(stream, durable);
          if (left > 0) throw new Error(`${left} messages of ${durable} are not handled`);
        }
      },
      { timeoutMs: 120_000 },
    );
    await after.close();

    const stored = new Set<string>((await trial.project.notifications()).map(({ id }) => id));
    const promised = trial.promised();
    const gone = promised.filter(({ id }) => !stored.has(id));
    const kept = new Map(promised.map((one) => [one.id, one]));
    const begun = performance.now();
    const stop = long ? () => {} : hurry(clock);
    const { lost, unmarked, wrong, repeated, deliveries } = await checkInvariants(
      system,
      trial.project,
      [...stored].map((id) => kept.get(id) ?? { id }),
      { timeoutMs: finalWithinMs, events: false },
    ).finally(stop);
    return {
      sent: promised.filter(({ id }) => stored.has(id)).reduce((sum, { devices = 0 }) => sum + devices, 0),
      final: deliveries,
      lost: lost.reduce((sum, id) => sum + (kept.get(id)?.devices ?? 0), 0),
      repeated: { marked: repeated - unmarked.length, unmarked: unmarked.length },
      recoveryMs,
      problems: wrong.slice(0, 20),
      notes: [
        `${before} were accepted before the loss; ${gone.length} of all were in the broker alone and are gone`,
        `compared within ${seconds(performance.now() - begun)} of the end of the load`,
      ],
    };
  },
};
