import { setTimeout as delay } from "node:timers/promises";
import { broadcast, largeSend } from "../broadcast.ts";
import { partLines } from "../cost.ts";
import { probeOpens } from "../open-probe.ts";
import { probe } from "../probe.ts";
import { prepareReceipts } from "../receipts.ts";
import type { Context, Row } from "../row.ts";
import { percentile } from "../table.ts";
import { until } from "../until.ts";

/** Ten direct sends and ten opens a second: enough for a percentile, but no significant load. */
const everyMs = 100;
/** A device reports a push of a broadcast at random within this time: `packages/payload` says so in each push. */
const receiptSeconds = 25;

const topic = "asked";

/** A broadcast beside direct sends and opens. `work` resolves when all is over that they are measured beside. */
const beside = async <T>({ system, sinks }: Context, device: string, work: () => Promise<T>) => {
  let ended = false;
  const more = () => !ended;
  const [result, sends, opens] = await Promise.all([
    work().finally(() => {
      ended = true;
    }),
    probe(sinks.apns, { sender: system, device, everyMs }, more),
    probeOpens(system, everyMs, more),
  ]);
  return { result, direct: percentile(sends, 99), opens: percentile(opens, 99) };
};

/** A broadcast that asks no device, and the time in which receipts would come. */
const withoutReceipts = (context: Context, device: string, devices: number) =>
  beside(context, device, async () => {
    const sent = await broadcast(context.system, context.sinks.apns, topic, devices);
    await delay(receiptSeconds * 1000);
    return sent;
  });

const withReceipts = async (context: Context, device: string, devices: number, seconds: number) => {
  const { system, sinks } = context;
  const receipts = await prepareReceipts(system, [seconds, receiptSeconds]);
  if (receipts.devices !== devices) throw new Error(`${receipts.devices} of ${devices} devices would report`);
  let notification = "";
  const send = async () => {
    notification = await system.send(topic, { receipts: true });
    receipts.begin(notification);
    return notification;
  };
  const measured = await beside(context, device, async () => {
    const sent = await largeSend(system, sinks.apns, devices, send);
    const statuses = await receipts.statuses;
    if (statuses["204"] !== devices)
      throw new Error(`${devices} receipts were answered ${JSON.stringify(statuses)}: each must be taken`);
    return sent;
  });
  const counts = await until("the count of each receipt", async () => {
    const { counts } = await system.progress(notification);
    return (counts.received ?? 0) >= devices ? counts : undefined;
  });
  if (counts.received !== devices || counts.receipts_asked !== devices)
    throw new Error(`${devices} receipts: ${counts.receipts_asked} asked, ${counts.received} counted`);
  return measured;
};

/** The same broadcast with and without receipts: its speed, and the latency of direct sends and opens of its project. */
export const receiptsRow: Row = {
  name: "receipts",
  about:
    "a broadcast to the last of --devices that asks each for a receipt, while they come in, beside one that asks none",
  async *measure(context) {
    const { system, runs, sizes } = context;
    const devices = sizes.at(-1) ?? 0;
    await system.seed("apns", topic, devices, () => ({ capabilities: ["receipts"] }));
    const [device = ""] = await system.seed("apns", "not-asked", 1);
    const without: Awaited<ReturnType<typeof withoutReceipts>>[] = [];
    const asked: typeof without = [];
    // The first broadcast of a run would else pay for the compilation of code.
    await broadcast({ ...system, profiler: undefined }, context.sinks.apns, topic, devices);
    for (let run = 0; run < runs; run++) {
      const plain = await withoutReceipts(context, device, devices);
      without.push(plain);
      asked.push(await withReceipts(context, device, devices, devices / plain.result.pushesPerSecond));
    }
    const pair = (
      label: string,
      of: (one: (typeof without)[number]) => number,
      figure: "broadcast" | "direct" | "opens",
    ) => {
      const [before, after] = [without.map(of), asked.map(of)];
      const ratios = after.map((value, run) => value / (before[run] ?? 1));
      return [
        { label: `${label} without`, values: before },
        { label: `${label} with`, values: after },
        { label: "  ratio", values: ratios, digits: 2, figure: `receipts-${figure}-ratio` as const },
      ];
    };
    yield {
      title: `one send to a topic of ${devices} devices, each asked for a receipt, while the receipts come in`,
      lines: [
        ...pair("pushes/s", ({ result }) => result.pushesPerSecond, "broadcast"),
        ...pair("a direct send, POST to push, p99 ms", ({ direct }) => direct, "direct"),
        ...pair("an open, PUT to event, p99 ms", ({ opens }) => opens, "opens"),
        ...partLines(
          asked.map(({ result }) => result.cost),
          "µs a push",
        ),
      ],
    };
  },
};
