import { type Broadcast, broadcast, largeSend, linesOfEach } from "../broadcast.ts";
import { sumOf } from "../cost.ts";
import type { System } from "../herald.ts";
import type { Row } from "../row.ts";
import { until } from "../until.ts";

const hourMs = 3_600_000;
/** Later than anywhere else, so that no zone's time has passed. */
const easternmostHours = 14;
const westernmostHours = 12;

/** Forty: a whole hour apart all around the world, and those between. Some of them show the same time for half of the year. */
const zones = [
  "UTC",
  ...Array.from({ length: easternmostHours }, (_, at) => `Etc/GMT-${at + 1}`),
  ...Array.from({ length: westernmostHours }, (_, at) => `Etc/GMT+${at + 1}`),
  ...["Asia/Tehran", "Asia/Kabul", "Asia/Kolkata", "Asia/Kathmandu", "Asia/Yangon", "Australia/Eucla"],
  ...["Australia/Darwin", "Australia/Adelaide", "Australia/Lord_Howe", "Pacific/Chatham", "Pacific/Marquesas"],
  ...["America/St_Johns", "Europe/Berlin"],
];

type Planned = {
  readonly _id: string;
  readonly step?: string;
  readonly waves?: { readonly list: readonly { readonly at: Date }[] };
};

/** Makes all waves of a scheduled notification due now, each a millisecond after the other: a run cannot wait for a day to pass. */
const makeDue = async (system: System, id: string): Promise<number> => {
  const notifications = system.database("dispatch").collection<Planned>("notifications");
  const list = await until("the plan of the waves", async () => {
    const found = await notifications.findOne({ _id: id, step: "scheduled" });
    return found?.waves?.list;
  });
  const now = Date.now();
  const due = list.map((wave, n) => ({ ...wave, at: new Date(now - list.length + n) }));
  await notifications.updateOne({ _id: id }, { $set: { "waves.list": due, nextAt: due[0]?.at ?? new Date(now) } });
  return due.length;
};

export const wavesRow: Row = {
  name: "waves",
  about: "a send to the last of --devices in 40 time zones, at a local time, beside one at once: CPU of all processes",
  async *measure({ system, sinks, runs, sizes }) {
    const sink = sinks.apns;
    const devices = sizes.at(-1) ?? 0;
    await system.seed("apns", "world", devices, (index) => ({
      identifiers: { current_time_zone: zones[index % zones.length] ?? "UTC" },
    }));
    let waves = 0;
    const inWaves = async () => {
      const local = new Date(Date.now() + (easternmostHours + 1) * hourMs)
        .toISOString()
        .slice(0, "2030-01-31T09:00:00".length);
      const { id } = await system.herald.notifications.send({
        ...{ title: "Hello", body: "World", targets: ["topic:world"], ttl: 3_600 },
        ...{ send_at: local, time_zone: "device" },
      });
      waves = await makeDue(system, id);
      return id;
    };
    const plain: Broadcast[] = [];
    const cut: Broadcast[] = [];
    for (let run = 0; run < runs; run++) {
      plain.push(await broadcast({ ...system, profiler: undefined }, sink, "world", devices));
      cut.push(await largeSend(system, sink, devices, inWaves));
    }
    const all = cut.map(({ cost }) => sumOf(cost));
    const before = plain.map(({ cost }) => sumOf(cost));
    yield {
      title: `APNs: one send to a topic of ${devices} devices of ${zones.length} time zones, in ${waves} waves that are due at once`,
      lines: [
        { label: "CPU of all, µs a push", values: all },
        { label: "without waves, µs a push", values: before },
        {
          label: "ratio",
          values: all.map((cpu, run) => cpu / (before[run] ?? 1)),
          digits: 2,
          figure: "waves-cpu",
        },
        { label: "pushes/s", values: cut.map((one) => one.pushesPerSecond) },
        { label: "without waves, pushes/s", values: plain.map((one) => one.pushesPerSecond) },
        ...linesOfEach(cut),
      ],
    };
  },
};
