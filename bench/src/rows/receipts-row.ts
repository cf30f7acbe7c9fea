import { setTimeout as delay } from "node:timers/promises";
import { type Broadcast, broadcast, largeSend } from "../broadcast.ts";
import { type Cost, costOf, partLines } from "../cost.ts";
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

type Beside = {
  readonly sent: Broadcast;
  readonly direct: number;
  readonly opens: number;
  /** CPU from the POST to the last receipt, in µs per device. */
  readonly whole: Cost;
};

/** A broadcast beside direct sends and opens. `work` resolves when all is over that they are measured beside. */
const beside = async (
  { system, sinks }: Context,
  device: string,
  devices: number,
  work: () => Promise<Broadcast>,
): Promise<Beside> => {
  let ended = false;
  const more = () => !ended;
  let sent: Broadcast | undefined;
  const whole = costOf(system, devices, async () => {
    sent = await work().finally(() => {
      ended = true;
    });
  });
  const [cost, sends, opens] = await Promise.all([
    whole,
    probe(sinks.apns, { sender: system, device, everyMs }, more),
    probeOpens(system, everyMs, more),
  ]);
  if (sent === undefined) throw new Error("the broadcast was not sent");
  return { sent, direct: percentile(sends, 99), opens: percentile(opens, 99), whole: cost };
};

/** A broadcast that asks no device, and the time in which receipts would come. */
const withoutReceipts = ({ system, ...rest }: Context, device: string, devices: number) => {
  const context = { ...rest, system: { ...system, profiler: undefined } };
  return beside(context, device, devices, async () => {
    const sent = await broadcast(context.system, context.sinks.apns, topic, devices);
    await delay(receiptSeconds * 1000);
    return sent;
  });
};

const withReceipts = async (context: Context, device: string, devices: number) => {
  const { system, sinks } = context;
  const receipts = await prepareReceipts(system, sinks.apns, receiptSeconds);
  if (receipts.devices !== devices) throw new Error(`${receipts.devices} of ${devices} devices would report`);
  let notification = "";
  let load = 0;
  const send = async () => {
    notification = await system.send(topic, { receipts: true });
    receipts.begin(notification);
    return notification;
  };
  const measured = await beside(context, device, devices, async () => {
    // A profile covers the receipts that come later, too.
    const sent = await largeSend({ ...system, profiler: undefined }, sinks.apns, devices, send);
    const { statuses, cpuSeconds } = await receipts.received;
    if (statuses["204"] !== devices)
      throw new Error(`${devices} receipts were answered ${JSON.stringify(statuses)}: each must be taken`);
    load = (cpuSeconds * 1e6) / devices;
    return sent;
  });
  const counts = await until("the count of each receipt", async () => {
    const { counts } = await system.progress(notification);
    return (counts.received ?? 0) >= devices ? counts : undefined;
  });
  if (counts.received !== devices || counts.receipts_asked !== devices)
    throw new Error(`${devices} receipts: ${counts.receipts_asked} asked, ${counts.received} counted`);
  return { ...measured, load };
};

/** What receipts added to the CPU of each process, and the CPU of the load that sends them. */
const costOfReceipts = (without: readonly Beside[], asked: readonly (Beside & { readonly load: number })[]): Cost[] =>
  asked.map(({ whole, load }, run) => {
    const added = Object.entries(whole).map(([name, cost]) => [name, cost - (without[run]?.whole[name] ?? 0)]);
    return { ...Object.fromEntries(added), load };
  });

/** The same broadcast with and without receipts: its speed, and the latency of direct sends and opens of its project. */
export const receiptsRow: Row = {
  name: "receipts",
  about:
    "a broadcast to the last of --devices that asks each for a receipt, which come within 25 s of each push, beside one that asks none",
  async *measure(context) {
    const { system, runs, sizes } = context;
    const devices = sizes.at(-1) ?? 0;
    await system.seed("apns", topic, devices, () => ({ capabilities: ["receipts"] }));
    const [device = ""] = await system.seed("apns", "not-asked", 1);
    const without: Beside[] = [];
    const asked: Awaited<ReturnType<typeof withReceipts>>[] = [];
    // The first broadcast and the first receipts would else pay for the compilation of code.
    await withReceipts({ ...context, system: { ...system, profiler: undefined } }, device, devices);
    for (let run = 0; run < runs; run++) {
      without.push(await withoutReceipts(context, device, devices));
      asked.push(await withReceipts(context, device, devices));
    }
    const pair = (label: string, of: (one: Beside) => number, figure: "broadcast" | "direct" | "opens") => {
      const [before, after] = [without.map(of), asked.map(of)];
      const ratios = after.map((value, run) => value / (before[run] ?? 1));
      return [
        { label: `${label}: without`, values: before },
        { label: `${label}: with`, values: after },
        { label: `${label}: ratio`, values: ratios, digits: 2, figure: `receipts-${figure}-ratio` as const },
      ];
    };
    yield {
      title: `a send to ${devices} devices that asks each for a receipt within ${receiptSeconds} s`,
      lines: [
        ...pair("pushes/s", ({ sent }) => sent.pushesPerSecond, "broadcast"),
        ...pair("a direct send of its project, p99 ms", ({ direct }) => direct, "direct"),
        ...pair("an open, PUT to event, p99 ms", ({ opens }) => opens, "opens"),
        ...partLines(
          without.map(({ sent }) => sent.cost),
          "µs a push: without",
        ),
        ...partLines(
          asked.map(({ sent }) => sent.cost),
          "µs a push: with",
        ),
        ...partLines(costOfReceipts(without, asked), "µs a receipt: with"),
      ],
    };
  },
};
