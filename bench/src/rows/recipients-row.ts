import type { RecipientKind } from "@herald/contracts";
import { type Broadcast, broadcast, largeSend, linesOfEach } from "../broadcast.ts";
import type { System } from "../herald.ts";
import { besidePeer } from "../peer.ts";
import { type Probe, probe } from "../probe.ts";
import type { Row } from "../row.ts";
import { costLines } from "../send-lines.ts";
import { type Singles, sendThroughHerald, warmUpHerald } from "../sends.ts";
import type { Sink } from "../sinks.ts";
import { percentile } from "../table.ts";
import { seedTargets, warmUp as singlesWarmUp } from "./direct-row.ts";

const warmUp = 5_000;
/** Ten sends a second: enough for a percentile during one upload, but no significant load. */
const everyMs = 100;

/** As a backend exports them: in no order of the database. */
const fileOf = (targets: readonly string[]): string =>
  targets
    .map((_, at) => {
      const target = targets[(at * 7_919) % targets.length];
      return JSON.stringify({ target, variables: { number: `R-${at}`, amount: at / 100 } });
    })
    .join("\n");

/** Sends to the recipients of a file, from the POST and the upload to the last push. */
const upload = (system: System, sink: Sink, kind: RecipientKind, targets: readonly string[]): Promise<Broadcast> => {
  const { notifications } = system.herald;
  const file = fileOf(targets);
  return largeSend(system, sink, targets.length, async () => {
    const { id } = await notifications.send({
      title: "Invoice {{ number }}",
      body: "You owe {{ amount | currency: 'EUR' }}.",
      variables: { number: "", amount: 0 },
      recipients: { upload: kind },
      ttl: 3_600,
    });
    await notifications.uploadRecipients(id, () => file);
    return id;
  });
};

const kinds = ["device", "user"] as const;

/** Uploads of recipients beside a send to a topic of the same devices. */
export const recipientsRow: Row = {
  name: "recipients",
  about: "an upload with values for each recipient, by `device:` and by `user:`, beside a topic: the last of --devices",
  async *measure({ system, sinks, runs, sizes }) {
    const sink = sinks.apns;
    const devices = sizes.at(-1) ?? 0;
    const topic = `recipients-of-${devices}`;
    const ids = await system.seed("apns", topic, devices, (at) => ({ user: { by: "project", userId: `r_${at}` } }));
    const targets = { device: ids.map((id) => `device:${id}`), user: ids.map((_, at) => `user:r_${at}`) };
    const other = await system.anotherProject();
    const [alone = ""] = await other.seed("apns", "alone", 1);
    const another: Probe = { sender: other, device: alone, everyMs };
    await system.seed("apns", "recipients-warm-up", warmUp);
    // Neither the profile nor the first of the compared runs may contain the compilation of code.
    const unprofiled = { ...system, profiler: undefined };
    await broadcast(unprofiled, sink, "recipients-warm-up", warmUp);
    for (const kind of kinds) await upload(unprofiled, sink, kind, targets[kind].slice(0, warmUp));

    const broadcasts: Broadcast[] = [];
    const uploads: Record<(typeof kinds)[number], Broadcast[]> = { device: [], user: [] };
    const slow: number[] = [];
    for (let run = 0; run < runs; run++) {
      broadcasts.push(await broadcast(unprofiled, sink, topic, devices));
      for (const kind of kinds) uploads[kind].push(await upload(system, sink, kind, targets[kind]));
      let ended = false;
      const beside = upload(unprofiled, sink, "user", targets.user).finally(() => {
        ended = true;
      });
      slow.push(percentile(await probe(sink, another, () => !ended), 99));
      await beside;
    }
    for (const kind of kinds)
      yield {
        title: `Large sends that do more, beside plain ones: an upload of ${devices} recipients by \`${kind}:\``,
        lines: [
          { label: "pushes/s", values: uploads[kind].map((one) => one.pushesPerSecond) },
          { label: "plain/s", values: broadcasts.map((one) => one.pushesPerSecond) },
          {
            label: "ratio to plain",
            values: uploads[kind].map((one, run) => one.pushesPerSecond / (broadcasts[run]?.pushesPerSecond ?? 1)),
            digits: 2,
            figure: `recipients-${kind}`,
          },
          { label: "CPU of Herald, µs", values: uploads[kind].map((one) => one.ownCpu) },
          { label: "CPU of plain, µs", values: broadcasts.map((one) => one.ownCpu) },
          ...linesOfEach(uploads[kind]),
        ],
      };
    yield {
      title: "Direct sends beside other work: another project's upload by `user:`",
      lines: [{ label: "p99 ms with", values: slow, figure: "recipients-p99" }],
    };
  },
};

/** The size of the peer's batches. */
const batchOf = 100;

/** Many recipients in one request, each with a value of its own. */
export const inlineRecipientsRow: Row = {
  name: "recipients-inline",
  about: `${batchOf} recipients a request, each a device with a value of its own`,
  async *measure({ system, sinks, runs, singles, peer }) {
    const sink = sinks.apns;
    const count = Math.max(1, Math.round((2 * singles) / batchOf)) * batchOf;
    const targets = await seedTargets(system);
    const load = { targets, batchOf, recipients: true };
    await warmUpHerald(system, { ...load, count: singlesWarmUp });
    const sent: Singles[] = [];
    for (let run = 0; run < runs; run++) sent.push(await sendThroughHerald(system, sink, { ...load, count }));
    const rates = sent.map(({ perSecond }) => perSecond);
    yield {
      title: `Sends to one device each: ${batchOf} recipients with values a request`,
      lines: [
        { label: "sends/s", values: rates, figure: "recipients-inline" },
        ...besidePeer(peer, "batches", rates),
        ...costLines(sent.map(({ cost }) => cost)),
      ],
    };
  },
};
