import { type Broadcast, broadcast, largeSend, linesOfEach } from "../broadcast.ts";
import { sumOf } from "../cost.ts";
import type { System } from "../herald.ts";
import type { Row } from "../row.ts";
import { until } from "../until.ts";

const hourMs = 3_600_000;
/** How far clocks are ahead of UTC, and behind it. */
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

/** The time is an hour later than anywhere by now, and was past everywhere this long ago. */
const pastMs = (easternmostHours + westernmostHours + 2) * hourMs;

const earlier = (at: Date): Date => new Date(at.getTime() - pastMs);
const localTime = (at: Date): string => at.toISOString().slice(0, "2030-01-31T09:00:00".length);

type Planned = {
  readonly _id: string;
  readonly step?: string;
  readonly expansions?: {
    readonly list: readonly { readonly at: Date }[];
    readonly local: { readonly at: string; readonly since: string };
  };
};

/** Moves a scheduled notification so far back that all of its waves are due: a run cannot wait for a day to pass. */
const makeDue = async (system: System, id: string): Promise<number> => {
  const notifications = system.database("dispatch").collection<Planned>("notifications");
  const { list, local } = await until("the plan of the waves", async () => {
    const found = await notifications.findOne({ _id: id, step: "scheduled" });
    return found?.expansions;
  });
  const change = {
    "expansions.list": list.map((wave) => ({ ...wave, at: earlier(wave.at) })),
    // The waves are planned again when each begins.
    "expansions.local.at": localTime(earlier(new Date(`${local.at}Z`))),
    "expansions.local.since": earlier(earlier(new Date(local.since))).toISOString(),
    nextAt: earlier(list[0]?.at ?? new Date()),
  };
  await notifications.updateOne({ _id: id }, { $set: change });
  return list.length;
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
      const local = localTime(new Date(Date.now() + (easternmostHours + 1) * hourMs));
      const { id } = await system.herald.notifications.send({
        ...{ title: "Hello", body: "World", targets: ["topic:world"], ttl: 72 * 3_600 },
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
      title: `Large sends that do more, beside plain ones: ${devices} in ${zones.length} time zones, in ${waves} waves that are due at once`,
      lines: [
        { label: "CPU of all, µs", values: all },
        { label: "CPU of plain, µs", values: before },
        {
          label: "ratio of CPU to plain",
          values: all.map((cpu, run) => cpu / (before[run] ?? 1)),
          digits: 2,
          figure: "waves-cpu",
        },
        { label: "pushes/s", values: cut.map((one) => one.pushesPerSecond) },
        { label: "plain/s", values: plain.map((one) => one.pushesPerSecond) },
        ...linesOfEach(cut),
      ],
    };
  },
};
