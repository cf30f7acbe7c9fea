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
    for (const [name, sender] of Object.entries({ same: system, other })) {
      const [device = ""] = await sender.seed("apns", "alone", 1);
      probes.push({ name, sender, device, everyMs });
    }
    const times = new Map<string, number[]>();
    const add = (label: string, value: number) => times.set(label, [...(times.get(label) ?? []), value]);
    const note = (when: string, all: readonly number[][]) => {
      for (const [at, { name }] of probes.entries())
        for (const percent of [50, 99])
          add(`${name} project, p${percent} ms ${when}`, percentile(all[at] ?? [], percent));
    };
    for (let run = 0; run < runs; run++) {
      await resetSink(sink);
      note("without", await Promise.all(probes.map((one) => probe(sink, one, (sent) => sent < quietSamples))));
      let ended = false;
      const sent = broadcast(system, sink, topic, devices).finally(() => {
        ended = true;
      });
      const beside = await Promise.all(probes.map((one) => probe(sink, one, () => !ended)));
      add("pushes/s of the broadcast", (await sent).pushesPerSecond);
      note("with", beside);
    }
    yield {
      title: `one device at a time beside a send to a topic of ${devices} devices, from the POST to the push`,
      lines: [...times].map(([label, values]) => ({ label, values })),
    };
  },
};
