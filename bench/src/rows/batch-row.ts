import { besideFloor } from "../floors.ts";
import type { System } from "../herald.ts";
import type { Row } from "../row.ts";
import { sendLines } from "../send-lines.ts";
import { type Singles, sendThroughFloor, sendThroughHerald, settled, warmUpHerald } from "../sends.ts";
import { seedTargets, warmUp } from "./direct-row.ts";

/** The size of the peer's batches. */
const batchOf = 100;

/** Checks with one small batch that each notification gets an id, so that an error shows once and not for every request. */
const expectBatches = async (system: System, targets: readonly string[]): Promise<void> => {
  const two = targets.slice(0, 2).map((target) => ({ title: "Hello", body: "World", targets: [target], ttl: 3_600 }));
  const answer = await system.postBatch(two).catch((error: Error) => {
    throw new Error(`this Herald takes no notifications by POST /api/v1/notifications/batch: ${error.message}`);
  });
  if (answer.length !== two.length || answer.some(({ id }) => id === undefined))
    throw new Error(
      `a batch of ${two.length} notifications was answered ${JSON.stringify(answer)}: each must get an id`,
    );
};

/** Many notifications in one request, each with its own content and target. */
export const batchRow: Row = {
  name: "batch",
  about: `${batchOf} different notifications a request through POST /notifications/batch, each to one device`,
  async *measure({ system, sinks, runs, singles, peer }) {
    const sink = sinks.apns;
    // Only full batches, and several for each connection.
    const count = Math.max(1, Math.round((2 * singles) / batchOf)) * batchOf;
    const targets = await seedTargets(system);
    await settled(system, 2, () => expectBatches(system, targets));
    const batches: Singles[] = [];
    const floors: Singles[] = [];
    await besideFloor(sink, async (floor) => {
      const first = { count: warmUp, targets, batchOf };
      await sendThroughFloor(floor, sink, first);
      await warmUpHerald(system, first);
      const load = { count, targets, batchOf };
      for (let run = 0; run < runs; run++) {
        floors.push(await sendThroughFloor(floor, sink, load));
        batches.push(await sendThroughHerald(system, sink, load));
      }
    });
    yield {
      title: `Sends to one device each: ${batchOf} a request`,
      lines: sendLines({ singles: batches, floors, peer, work: "batches", figure: "batch" }),
    };
  },
};
