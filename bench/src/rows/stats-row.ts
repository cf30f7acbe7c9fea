import { setTimeout as delay } from "node:timers/promises";
import { type NotificationId, newDeviceId, type Tag } from "@herald/contracts";
import { seedOpens } from "../../../services/analytics/test/seed-opens.ts";
import { seedValues } from "../../../services/analytics/test/seed-values.ts";
import type { Sender, System } from "../herald.ts";
import { peakMegabytes, start } from "../processes.ts";
import type { Row } from "../row.ts";
import { samplesOf } from "../samples.ts";
import { type Line, percentile } from "../table.ts";

/** The number of opened notifications, the same in both projects so that they differ only in opens. */
const notifications = 100;
const dayMs = 86_400_000;
const platforms = ["ios", "android", "web"] as const;
const pollMs = 100;
const topic = "opened";
/** One notification in five has a kind and a label with its own value; each of its opens is stored twice. */
const taggedEvery = 5;
/** The maximum number of values of a label in a month. */
const atTheLimit = { label: "campaign", values: 1_000, days: 31 };

type Seeded = {
  readonly of: Sender;
  readonly count: number;
  readonly ids: readonly string[];
  readonly from: number;
};

/** Opens within a day after the send, in order of time. Most come early: the fraction of the day is cubed. */
const opensOf = function* (of: Sender, ids: readonly string[], count: number, from: number) {
  const at = new Date(from);
  for (let index = 0; index < count; index++)
    yield {
      projectId: of.project.id,
      notificationId: ids[index % ids.length] as NotificationId,
      deviceId: newDeviceId(at),
      platform: platforms[Math.floor(index / ids.length) % platforms.length] ?? "ios",
      at: new Date(from + dayMs * (index / count) ** 3),
    };
};

const dayFrom = (at: number) => ({ from: new Date(at).toISOString(), to: new Date(at + dayMs).toISOString() });
const range = (from: number): string => String(new URLSearchParams(dayFrom(from)));

const month = (from: number): string =>
  String(new URLSearchParams({ ...dayFrom(from), from: new Date(from - 29 * dayMs).toISOString() }));

const seed = async (system: System, count: number): Promise<Seeded> => {
  const of = await system.anotherProject(`opens-${count}`);
  const ids: string[] = [];
  for (let index = 0; index < notifications; index++) ids.push(await of.send(topic));
  const from = Date.now();
  const tags = new Map(
    ids.flatMap((id, at): [string, Tag[]][] =>
      at % taggedEvery === 0 ? [[id, ["kind/promotion", `label/campaign/c${at}`]]] : [],
    ),
  );
  const opens = opensOf(of, ids, count, from);
  await seedOpens(system.database("analytics"), of.project.id, opens, (id) => tags.get(id) ?? []);
  return { of, count, ids, from };
};

/** Runs the program that rebuilds all statistics, as an operator does. Resolves to its seconds and its peak memory in MB. */
const rebuild = async (system: System): Promise<{ seconds: number; megabytes: number }> => {
  const waiting = { aggregated: false };
  // A rebuild refuses to run during an aggregation, and earlier rows may have left rows to aggregate.
  while ((await system.database("analytics").collection("statsDeltas").countDocuments(waiting)) > 0)
    await delay(pollMs);
  const begin = performance.now();
  const child = start("services/analytics/src/rebuild/main.ts", [], {
    HERALD_MONGO_URL: system.mongoUrl,
    HERALD_LOG_LEVEL: "silent",
  });
  let megabytes = 0;
  while (child.exitCode === null && child.signalCode === null) {
    megabytes = Math.max(megabytes, peakMegabytes(child.pid ?? 0) || 0);
    await delay(pollMs);
  }
  if (child.exitCode !== 0) throw new Error("the rebuild of the statistics failed");
  return { seconds: (performance.now() - begin) / 1_000, megabytes };
};

/** Checks that the statistics count every open once. */
const check = async ({ of, count, from }: Seeded): Promise<void> => {
  for (const [filter, expected] of [
    [{}, count],
    [{ kind: "promotion" }, count / taggedEvery],
  ] as const) {
    const { opened } = (await of.herald.stats({ ...dayFrom(from), ...filter })).totals;
    if (opened !== expected)
      throw new Error(`${expected} opens are stored and ${opened} counted ${JSON.stringify(filter)}`);
  }
};

/** The sizes of some collections and of their indexes on disk. */
const sizes = async (system: System): Promise<Line[]> => {
  const lines: Line[] = [];
  for (const name of ["opens", "statsDeltas", "rollups"]) {
    const stats = await system.database("analytics").command({ collStats: name });
    for (const [what, bytes] of [
      ["rows", stats.storageSize],
      ["indexes", stats.totalIndexSize],
    ] as const)
      lines.push({ label: `${name}: ${what} on disk, MB`, values: [Number(bytes) / 1_048_576] });
  }
  return lines;
};

/** A query for the days of a time zone that lie fully within the month with the values. */
const limitPath = (month: Date, zone: string): string =>
  `/stats?${new URLSearchParams({
    by: `label:${atTheLimit.label}`,
    interval: "day",
    time_zone: zone,
    from: new Date(month.getTime() + dayMs / 2).toISOString(),
    to: new Date(month.getTime() + (atTheLimit.days - 0.5) * dayMs).toISOString(),
  })}`;

/** The measured queries, about one opened notification or all. */
const questions: Readonly<Record<string, (id: string, from: number) => string>> = {
  "stats by hour": (_id, from) => `/stats?${range(from)}`,
  "stats by day, a month": (_id, from) => `/stats?interval=day&${month(from)}`,
  "stats of a notification": (id, from) => `/stats?notification=${id}&${range(from)}`,
  "stats of a notification by platform": (id, from) => `/stats?notification=${id}&by=platform&${range(from)}`,
  "stats by platform": (_id, from) => `/stats?by=platform&${range(from)}`,
  "stats by label, a month": (_id, from) => `/stats?by=label:campaign&interval=day&${month(from)}`,
  "stats by topic, a month": (_id, from) => `/stats?by=topic&interval=day&${month(from)}`,
  "stats of a topic": (_id, from) => `/stats?topic=${topic}&${range(from)}`,
  "stats of a platform": (_id, from) => `/stats?platform=ios&${range(from)}`,
  "stats of a label": (_id, from) => `/stats?label=campaign:c5&${range(from)}`,
  "stats by label": (_id, from) => `/stats?by=label:campaign&${range(from)}`,
  "stats by kind": (_id, from) => `/stats?by=kind&${range(from)}`,
  "stats by topic": (_id, from) => `/stats?by=topic&${range(from)}`,
  "totals of a notification": (id) => `/notifications/${id}`,
  "list of notifications": () => "/notifications?per_page=100",
};

/** Statistics for each number of stored opens: more opens must not make them slower. */
export const statsRow: Row = {
  name: "stats",
  about: "statistics and totals, by each number of --opens-stored",
  async *measure({ system, runs, opensStored }) {
    const seeded: Seeded[] = [];
    for (const count of opensStored) seeded.push(await seed(system, count));
    const stored = opensStored.reduce((sum, count) => sum + count, 0);
    const { seconds, megabytes } = await rebuild(system);
    for (const one of seeded) await check(one);
    const rebuilt: Line[] = [
      { label: "s", values: [seconds], digits: 1 },
      { label: "opens/s", values: [stored / seconds] },
      { label: "largest memory, MB", values: [megabytes] },
    ];
    const disk = await sizes(system);
    const lines: Line[] = [];
    const ask = async (to: Line[], label: string, work: (index: number) => Promise<unknown>): Promise<void> => {
      const values: number[] = [];
      for (let run = 0; run < runs; run++) values.push(percentile(await samplesOf(work), 50));
      to.push({ label, values, digits: 1 });
    };
    for (const [name, path] of Object.entries(questions))
      for (const { of, count, ids, from } of seeded)
        await ask(lines, `${name}: p50 ms of ${count} opens`, (index) =>
          of.get(path(ids[index % ids.length] ?? "", from)),
        );
    const months: Line[] = [];
    const limit = await system.anotherProject("values");
    const january = new Date(Date.UTC(new Date().getUTCFullYear(), 0, 1));
    await seedValues(system.database("analytics"), limit.project.id, { ...atTheLimit, from: january });
    for (const zone of ["UTC", "America/New_York"])
      await ask(months, `${zone}: p50 ms`, () => limit.get(limitPath(january, zone)));
    yield { title: `a rebuild of the statistics of ${stored} opens`, lines: rebuilt };
    yield { title: `what ${stored} opens take on disk`, lines: disk };
    yield {
      title: `statistics of ${opensStored.join(" and ")} opens of ${notifications} notifications, a fifth with a kind and a label`,
      lines,
    };
    yield { title: `statistics of a month by a label of ${atTheLimit.values} values`, lines: months };
  },
};
