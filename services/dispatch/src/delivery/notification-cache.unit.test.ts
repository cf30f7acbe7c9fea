import { memoryBytesOf } from "@herald/kit";
import { beforeEach, describe, expect, test } from "vitest";
import type { NotificationRecord, Stop } from "../stores/notification-document.ts";
import { type CachedNotification, createNotificationCache, type NotificationCache } from "./notification-cache.ts";

const projectId = "prj_06bq4ghm31tz5d2ns8y7k9w0ac";
const start = Date.parse("2030-01-01");
const record = (n: number): NotificationRecord => ({
  _id: `ntf_${n}`,
  projectId,
  content: { title: "Hello", targets: ["topic:news"] },
  acceptedAt: new Date(start),
  expiresAt: new Date(start + 60_000),
  status: "sending",
  step: "delivering",
  nextAt: new Date(start + 60_000),
});

let time: number;
let stored: Map<string, NotificationRecord>;
let reads: string[];
let cache: NotificationCache;
beforeEach(() => {
  time = start;
  stored = new Map([1, 2, 3].map((n) => [`ntf_${n}`, record(n)]));
  reads = [];
  const read = (what: string) => async (_: string, id: string) => {
    reads.push(`${what} ${id}`);
    return stored.get(id) ?? null;
  };
  cache = createNotificationCache(
    { get: read("all"), getState: read("state") },
    { maxBytes: 2 * (memoryBytesOf(record(1)) + 300), now: () => new Date(time) },
  );
});

const cached = async (n: number): Promise<CachedNotification> => {
  const found = await cache.get(projectId, `ntf_${n}`);
  if (!found) throw new Error("not found");
  return found;
};
const stop = (n: number, kind: Stop["kind"]) =>
  stored.set(`ntf_${n}`, { ...record(n), stop: { kind, at: new Date(time) } });

describe("the content", () => {
  test("is read once, also for batches that come together, and without its targets", async () => {
    const [one, other] = await Promise.all([cached(1), cached(1)]);
    expect(one).toBe(other);
    expect((await cached(1)).document.content).toEqual({ title: "Hello", targets: [] });
    expect(reads).toEqual(["all ntf_1"]);
  });

  test("of a notification that was just inserted is not read again", async () => {
    cache.put(record(1));
    await cached(1);
    expect(reads).toEqual([]);
  });

  test("that was used longest ago is forgotten first", async () => {
    await cached(1);
    await cached(2);
    await cached(1);
    await cached(3);
    reads = [];
    await cached(1);
    await cached(2);
    expect(reads).toEqual(["all ntf_2"]);
  });

  test("that is larger than the whole cache is read each time, and sent", async () => {
    stored.set("ntf_1", { ...record(1), content: { body: "x".repeat(10_000), targets: ["topic:news"] } });
    expect((await cached(1)).document.content.body).toHaveLength(10_000);
    await cached(1);
    expect(reads).toEqual(["all ntf_1", "all ntf_1"]);
  });

  test("of another project, or unknown, is not found", async () => {
    await cached(1);
    expect(await cache.get("prj_other", "ntf_1")).toBeUndefined();
    expect(await cache.get(projectId, "ntf_9")).toBeUndefined();
  });
});

describe("a cancel", () => {
  test("in another process is seen after a tenth of a second, with one read", async () => {
    const one = await cached(1);
    stop(1, "cancelled");
    time += 99;
    expect(await cache.stopped(one)).toBeUndefined();
    time += 1;
    reads = [];
    expect(await Promise.all([cache.stopped(one), cache.stopped(one)])).toEqual(["cancelled", "cancelled"]);
    expect(reads).toEqual(["state ntf_1"]);
  });

  test("in this process is seen at once", async () => {
    const one = await cached(1);
    cache.cancel("ntf_1");
    expect(await cache.stopped(one)).toBe("cancelled");
    expect(one.cancelled).toBe(true);
  });

  test("is not missed while the database is unavailable", async () => {
    const one = await cached(1);
    time += 1_000;
    stored.get = () => {
      throw new Error("unavailable");
    };
    await expect(cache.stopped(one)).rejects.toThrow("unavailable");
    stored = new Map();
    stop(1, "cancelled");
    expect(await cache.stopped(one)).toBe("cancelled");
  });
});

test.each(["abandoned", "cancelled"] as const)("what was %s from the start is so", async (state) => {
  stop(2, state);
  expect(await cache.stopped(await cached(2))).toBe(state);
});

test("a notification that was deleted with its project is no longer sent", async () => {
  const one = await cached(1);
  stored.delete("ntf_1");
  time += 1_000;
  expect(await cache.stopped(one)).toBe("cancelled");
});
