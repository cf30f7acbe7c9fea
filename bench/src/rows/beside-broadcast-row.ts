import { setTimeout as delay } from "node:timers/promises";
import { broadcast } from "../broadcast.ts";
import type { Sender } from "../herald.ts";
import { percentile, type Row } from "../row.ts";
import { countedBy, markedFrom, resetSink, type Sink } from "../sinks.ts";

/** Ten sends a second and project: enough for a percentile of one broadcast, and no load of their own. */
const everyMs = 100;
/** As many samples without a broadcast as tell a 99th percentile. */
const quietSamples = 100;
/** A send that is not at the sink by then is lost. */
const patienceMs = 120_000;

type Probe = { readonly name: string; readonly sender: Sender; readonly device: string };

let marks = 0;

/** Sends to one device after another, and resolves to each one's time from the POST to its push at the sink, in ms. */
const probe = async (sink: Sink, { sender, device }: Probe, more: (sent: number) => boolean): Promise<number[]> => {
  const sentAt = new Map<string, number>();
  const sends: Promise<unknown>[] = [];
  for (let sent = 0; more(sent); sent++) {
    await delay(everyMs);
    const title = `mark ${++marks}`;
    sentAt.set(title, Date.now());
    sends.push(sender.post({ title, body: "x".repeat(markedFrom), targets: [`device:${device}`], ttl: 3600 }));
  }
  await Promise.all(sends);
  const until = Date.now() + patienceMs;
  let { marked } = await countedBy(sink);
  while ([...sentAt.keys()].some((title) => marked[title] === undefined)) {
    if (Date.now() > until) throw new Error("a direct send never came to the sink");
    await delay(everyMs);
    ({ marked } = await countedBy(sink));
  }
  return [...sentAt].map(([title, at]) => (marked[title] ?? 0) - at);
};

/** Direct sends, of the project that broadcasts and of another, while nothing else runs and while a broadcast does. */
export const besideBroadcastRow: Row = {
  name: "beside-broadcast",
  async *measure({ system, sinks, runs, sizes }) {
    const sink = sinks.apns;
    const devices = sizes.at(-1) ?? 0;
    const topic = `beside-of-${devices}`;
    await system.seed("apns", topic, devices);
    const other = await system.anotherProject();
    const probes: Probe[] = [];
    for (const [name, sender] of Object.entries({ same: system, other })) {
      const [device = ""] = await sender.seed("apns", "alone", 1);
      probes.push({ name, sender, device });
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
