import type { Provider } from "@herald/contracts";
import { type Broadcast, broadcast, linesOfEach } from "../broadcast.ts";
import { besidePeer } from "../peer.ts";
import { resultOf } from "../processes.ts";
import type { Context, Row } from "../row.ts";
import type { Sink } from "../sinks.ts";
import type { Line, Table } from "../table.ts";

type Floor = {
  readonly pushes: number;
  readonly seconds: number;
  readonly cpuMicros: number;
  readonly encryptMicros: number;
  readonly agreeMicros: number;
};

/** Measures `node:http2` alone, in the same run and against the same sink. */
const measureFloor = (provider: Provider, sink: Sink, pushes: number): Promise<Floor> =>
  resultOf("bench/src/floor.ts", [provider, sink.url, String(pushes)], { BENCH_CA: sink.ca });

const nameOf: Readonly<Record<Provider, string>> = { apns: "APNs", fcm: "FCM", webpush: "Web Push" };

/** The figure is that of the largest audience, which is measured last. */
const figuresOf: Readonly<Record<Provider, Pick<Line, "figure">>> = {
  apns: { figure: "broadcast" },
  fcm: {},
  webpush: { figure: "webpush" },
};

const encryptionOf = (floors: readonly Floor[]): Table => ({
  title: "what Web Push encryption costs, µs a push",
  lines: [
    { label: "encryption", values: floors.map(({ pushes, encryptMicros }) => encryptMicros / pushes) },
    { label: "of it, key agreement", values: floors.map(({ pushes, agreeMicros }) => agreeMicros / pushes) },
  ],
});

const tableOf = (
  { peer }: Context,
  provider: Provider,
  devices: number,
  broadcasts: readonly Broadcast[],
  floors: readonly Floor[],
): Table => {
  const rates = broadcasts.map((one) => one.pushesPerSecond);
  const floorRates = floors.map(({ pushes, seconds }) => pushes / seconds);
  return {
    title: `Sends to many devices: ${nameOf[provider]}, a topic of ${devices}`,
    lines: [
      { label: "pushes/s", values: rates, ...figuresOf[provider] },
      { label: "floor/s", values: floorRates },
      {
        label: "ratio to floor",
        values: rates.map((rate, index) => rate / (floorRates[index] ?? 1)),
        digits: 2,
      },
      ...(provider === "apns" ? besidePeer(peer, "broadcast", rates) : []),
      {
        label: "CPU of Herald, µs",
        values: broadcasts.map((one) => one.ownCpu),
        ...(provider === "apns" ? { figure: "broadcast-own-cpu" } : {}),
      },
      { label: "CPU of floor, µs", values: floors.map(({ pushes, cpuMicros }) => cpuMicros / pushes) },
      ...linesOfEach(broadcasts),
    ],
  };
};

const warmUp = 5_000;

const broadcastsOf = (
  provider: Provider,
  name: string,
  sizesOf: (sizes: readonly number[]) => readonly number[],
): Row => ({
  name,
  about: `one send to a topic, beside the floor: ${nameOf[provider]}, ${provider === "apns" ? "each" : "the first"} of --devices`,
  async *measure(context) {
    const { system, sinks, runs, sizes } = context;
    const sink = sinks[provider];
    await system.seed(provider, `${provider}-warm-up`, warmUp);
    // The profile must not contain the compilation of code.
    await broadcast({ ...system, profiler: undefined }, sink, `${provider}-warm-up`, warmUp);
    for (const devices of sizesOf(sizes)) {
      const topic = `${provider}-of-${devices}`;
      await system.seed(provider, topic, devices);
      const broadcasts: Broadcast[] = [];
      const floors: Floor[] = [];
      for (let run = 0; run < runs; run++) {
        floors.push(await measureFloor(provider, sink, devices));
        broadcasts.push(await broadcast(system, sink, topic, devices));
      }
      yield tableOf(context, provider, devices, broadcasts, floors);
      if (provider === "webpush") yield encryptionOf(floors);
    }
  },
});

/** One send to a topic, beside the floor: APNs at every size; the others at the first size, which shows their differences as well. */
export const broadcastRows: readonly Row[] = [
  broadcastsOf("apns", "broadcast", (sizes) => sizes),
  broadcastsOf("fcm", "broadcast-fcm", (sizes) => sizes.slice(0, 1)),
  broadcastsOf("webpush", "broadcast-webpush", (sizes) => sizes.slice(0, 1)),
];
