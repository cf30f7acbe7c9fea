import { setTimeout as delay } from "node:timers/promises";
import type { StatsQuery } from "@herald/client";
import { type NotificationId, newDeviceId, type Tag } from "@herald/contracts";
import { seedOpens } from "../../../services/analytics/test/seed-opens.ts";
import type { Sender } from "../herald.ts";
import type { Context, Row } from "../row.ts";
import { percentile } from "../table.ts";

/** Notifications that the opens are of: the same number in both projects, so that nothing but the opens differs. */
const notifications = 100;
const samples = 30;
const dayMs = 86_400_000;
const platforms = ["ios", "android", "web"] as const;
const pollMs = 500;
const topic = "opened";
/** Values of the label; each has as many opens as others. */
const campaigns = 50;

type Seeded = {
  readonly of: Sender;
  readonly count: number;
  readonly ids: readonly string[];
  readonly from: number;
};

/** Opens of the day that follows, most of them soon: the fraction of the day is cubed. */
const opensOf = function* (of: Sender, ids: readonly string[], count: number, from: number) {
  const at = new Date(from);
  for (let index = 0; index < count; index++)
    yield {
      projectId: of.project.id,
      notificationId: ids[Math.floor((index * ids.length) / count)] as NotificationId,
      deviceId: newDeviceId(at),
      platform: platforms[index % platforms.length] ?? "ios",
      openedAt: new Date(from + dayMs * Math.random() ** 3),
    };
};

const dayFrom = (at: number) => ({ from: new Date(at).toISOString(), to: new Date(at + dayMs).toISOString() });
const range = (from: number): string => String(new URLSearchParams(dayFrom(from)));

const seed = async (system: Context["system"], count: number): Promise<Seeded> => {
  const of = await system.anotherProject(`opens-${count}`);
  const ids: string[] = [];
  for (let index = 0; index < notifications; index++) ids.push(await of.send(topic));
  const from = Date.now();
  const tags = new Map(
    ids.map((id, at): [string, Tag[]] => [id, ["kind/promotion", `label/campaign/c${at % campaigns}`]]),
  );
  const opens = opensOf(of, ids, count, from);
  await seedOpens(system.database("analytics"), of.project.id, opens, (id) => tags.get(id) ?? []);
  const counted = async (filter: StatsQuery) => (await of.herald.stats({ ...dayFrom(from), ...filter })).totals.opened;
  for (const filter of [{}, { kind: "promotion" }]) {
    while ((await counted(filter)) < count) await delay(pollMs);
    const found = await counted(filter);
    if (found !== count) throw new Error(`${count} opens are stored and ${found} counted ${JSON.stringify(filter)}`);
  }
  return { of, count, ids, from };
};

/** What is asked, of a notification that was opened or of all. */
const questions: Readonly<Record<string, (id: string, from: number) => string>> = {
  "stats by hour": (_id, from) => `/stats?${range(from)}`,
  "stats by day, a month": (_id, from) =>
    `/stats?interval=day&from=${new Date(from - 29 * dayMs).toISOString()}&to=${new Date(from + dayMs).toISOString()}`,
  "stats of a notification": (id, from) => `/stats?notification=${id}&${range(from)}`,
  "stats of a topic": (_id, from) => `/stats?topic=${topic}&${range(from)}`,
  "stats of a platform": (_id, from) => `/stats?platform=ios&${range(from)}`,
  "stats of a label": (_id, from) => `/stats?label=campaign:c7&${range(from)}`,
  "stats by label": (_id, from) => `/stats?by=label:campaign&${range(from)}`,
  "stats by kind": (_id, from) => `/stats?by=kind&${range(from)}`,
  "stats by topic": (_id, from) => `/stats?by=topic&${range(from)}`,
  "totals of a notification": (id) => `/notifications/${id}`,
  "list of notifications": () => "/notifications?per_page=100",
};

/** Statistics by the number of opens that are stored: they must not cost more. */
export const statsRow: Row = {
  name: "stats",
  about: "statistics and totals, by each number of --opens-stored",
  async *measure({ system, runs, opensStored }) {
    const seeded: Seeded[] = [];
    for (const count of opensStored) seeded.push(await seed(system, count));
    const lines: { label: string; values: number[]; digits: number }[] = [];
    for (const [name, path] of Object.entries(questions))
      for (const { of, count, ids, from } of seeded) {
        const values: number[] = [];
        for (let run = 0; run < runs; run++) {
          const took: number[] = [];
          for (let index = 0; index < samples; index++) {
            const begin = performance.now();
            await of.get(path(ids[index % ids.length] ?? "", from));
            took.push(performance.now() - begin);
          }
          values.push(percentile(took, 50));
        }
        lines.push({ label: `${name}, ${count} opens, p50 ms`, values, digits: 1 });
      }
    yield {
      title: `statistics with ${opensStored.join(" and ")} opens of ${notifications} notifications stored, put there in bulk and aggregated by the service`,
      lines,
    };
  },
};
