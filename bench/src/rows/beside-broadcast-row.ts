import { broadcast } from "../broadcast.ts";
import { type Probe, probe } from "../probe.ts";
import type { Row } from "../row.ts";
import { resetSink } from "../sinks.ts";
import { percentile } from "../table.ts";

/** Ten sends a second per project: enough for a percentile during one broadcast, but no significant load. */
const everyMs = 100;
/** Samples without a broadcast: enough for a 99th percentile. */
const quietSamples = 100;

/** Direct sends of the broadcasting project and of another, each with and without the broadcast. */
export const besideBroadcastRow: Row = {
  name: "beside-broadcast",
  about: "POST to push of direct sends beside a broadcast to the last of --devices, of the same project and of another",
  async *measure({ system, sinks, runs, sizes }) {
    const sink = sinks.apns;
    const devices = sizes.at(-1) ?? 0;
    const topic = `beside-of-${devices}`;
    await system.seed("apns", topic, devices);
    const other = await system.anotherProject();
    const probes: (Probe & { readonly name: string })[] = [];
    for (const [name, sender] of Object.entries({ "the same": system, another: other })) {
      const [device = ""] = await sender.seed("apns", "alone", 1);
      probes.push({ name, sender, device, everyMs });
    }
    const rates: number[] = [];
    const times = new Map(probes.map(({ name }) => [name, new Map<string, number[]>()]));
    const note = (when: string, all: readonly number[][]) => {
      for (const [at, lines] of [...times.values()].entries())
        for (const percent of [50, 99]) {
          const label = `p${percent} ms ${when}`;
          lines.set(label, [...(lines.get(label) ?? []), percentile(all[at] ?? [], percent)]);
        }
    };
    for (let run = 0; run < runs; run++) {
      await resetSink(sink);
      note("without", await Promise.all(probes.map((one) => probe(sink, one, (sent) => sent < quietSamples))));
      let ended = false;
      const sent = broadcast(system, sink, topic, devices).finally(() => {
        ended = true;
      });
      const beside = await Promise.all(probes.map((one) => probe(sink, one, () => !ended)));
      rates.push((await sent).pushesPerSecond);
      note("with", beside);
    }
    for (const [name, lines] of times)
      yield {
        title: `Direct sends beside other work: ${name} project's send to a topic of ${devices}`,
        lines: [
          ...[...lines].map(([label, values]) => ({ label, values })),
          { label: "the other work/s", values: rates },
        ],
      };
  },
};
