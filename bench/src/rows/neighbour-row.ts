import { type Probe, probe } from "../probe.ts";
import type { Row } from "../row.ts";
import { sends, without } from "../sends.ts";
import { pushed, resetSink } from "../sinks.ts";
import { percentile } from "../table.ts";

const waiting = 10_000;
/** Twenty sends a second: no significant load, but enough for a percentile while the noisy project's sends wait. */
const everyMs = 50;
const quietSamples = 100;

/**
 * Direct sends of one project while sends of a noisy project wait. Dispatch is paused until all sends of the noisy project are accepted,
 * so all of them wait when the first send of the other project arrives.
 */
export const neighbourRow: Row = {
  name: "neighbour",
  about: `POST to push of one project's direct sends while ${waiting} of another project wait`,
  async *measure({ system, sinks, runs }) {
    const sink = sinks.apns;
    const noisy = await system.anotherProject("noisy");
    const targets = (await noisy.seed("apns", "each-alone", 1_000)).map((id) => `device:${id}`);
    const [device = ""] = await system.seed("apns", "alone", 1);
    const other: Probe = { sender: system, device, everyMs };
    const quiet: number[][] = [];
    const beside: number[][] = [];
    const rates: number[] = [];
    for (let run = 0; run < runs; run++) {
      await resetSink(sink);
      quiet.push(await probe(sink, other, (sent) => sent < quietSamples));
      await resetSink(sink);
      const load = { gateway: system.gateway, token: noisy.project.token, count: waiting, targets };
      await without(system, ["dispatch"], () => sends(load));
      const beganAt = Date.now();
      let ended = false;
      const drained = pushed(sink, waiting).finally(() => {
        ended = true;
      });
      beside.push(await probe(sink, other, () => !ended));
      rates.push(waiting / (((await drained).lastAt - beganAt) / 1000));
    }
    const lines = (all: readonly number[][], when: string) =>
      [50, 99].map((percent) => ({
        label: `p${percent} ms ${when}`,
        values: all.map((times) => percentile(times, percent)),
      }));
    const [median, slow] = lines(beside, "with");
    yield {
      title: `Direct sends beside other work: ${waiting} sends of another project wait`,
      lines: [
        ...lines(quiet, "without"),
        ...(median && slow ? [median, { ...slow, figure: "neighbour-p99" as const }] : []),
        { label: "the other work/s", values: rates },
      ],
    };
  },
};
