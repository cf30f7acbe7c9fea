import { handleRequest, type RequestListener } from "@herald/bus";
import {
  type DeviceId,
  type ExpandV1,
  type NotificationId,
  pagesOfExpansion,
  recipientRequests,
} from "@herald/contracts";
import { HeraldError } from "@herald/kit";
import { eventually } from "@herald/testing";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { createPartitionRecipients } from "../src/handlers/recipients-page.ts";
import { createAudienceStore } from "../src/stores/audience-store.ts";
import { createExpandedPageStore } from "../src/stores/expansion-store.ts";
import { type ExpandTest, sorted, startExpandTest } from "./expand-fixture.ts";

type Chunk = { readonly keys: readonly string[]; readonly last: boolean };

/** The chunks that dispatch has; absent: not stored yet. */
let chunks: (Chunk | undefined)[] = [];
/** The chunks that registry read and recorded, in order. */
let reads: number[] = [];
let recorded: { readonly chunk: number; readonly unmatched: readonly number[] }[] = [];
/** What dispatch does before it records a chunk. */
let onRecord: (chunk: number) => Promise<void> = async () => {};

let t: ExpandTest;
let listeners: RequestListener[] = [];
beforeAll(async () => {
  t = await startExpandTest();
  listeners = [
    handleRequest(t.registry.bus, recipientRequests.read, async ({ chunk: asked }) => {
      reads.push(asked);
      const chunk = chunks[asked];
      if (!chunk) return { state: "waiting" as const };
      return { state: "stored" as const, keys: JSON.stringify(chunk.keys), last: chunk.last };
    }),
    handleRequest(t.registry.bus, recipientRequests.record, async ({ chunk, unmatched }) => {
      await onRecord(chunk);
      recorded.push({ chunk, unmatched });
      return {};
    }),
  ];
});
afterAll(async () => {
  await Promise.all(listeners.map((listener) => listener.stop()));
  await t.stop();
});
beforeEach(async () => {
  await t.newProject();
  [chunks, reads, recorded] = [[], [], []];
  onRecord = async () => {};
});

const chunkOf = (from: number, to: number, last = false): Chunk => ({
  keys: Array.from({ length: to - from + 1 }, (_, at) => `u${from + at}`),
  last,
});
const seedUsers = (count: number) =>
  t.seed(
    Array.from({ length: count }, (_, at) => ({
      token: `t${at + 1}`,
      platform: "ios" as const,
      user: { by: "project" as const, userId: `u${at + 1}` },
    })),
  );

const send = async (): Promise<NotificationId> => {
  const data: ExpandV1 = t.message([], { recipients: "user" });
  await t.send(data);
  return data.notificationId;
};
/** The devices of each page's batches, and the sums of the notification. */
const expanded = (notificationId: NotificationId) =>
  eventually(
    () => {
      const end = t.expanded.find((one) => one.notificationId === notificationId);
      const batches = t.batches.filter((one) => one.notificationId === notificationId);
      if (!end || batches.length < end.batches) throw new Error("not expanded");
      return { end, devices: batches.flatMap(({ devices }) => devices) };
    },
    { timeoutMs: 20_000 },
  );

test("each recipient is found once, and the next chunk is read while a page is recorded", async () => {
  const ids = await seedUsers(5);
  chunks = [chunkOf(1, 3), chunkOf(4, 6, true)];
  // Page 0 ends only after page 1 was read.
  onRecord = async (page) => {
    if (page === 0) await eventually(() => expect(reads).toContain(1), { timeoutMs: 4_000 });
  };
  const { end, devices } = await expanded(await send());
  expect(end).toMatchObject({ batches: 2, devices: 5 });
  expect(sorted(devices.map(({ id }) => id))).toEqual(sorted(ids));
  expect(devices.map(({ userId, values }) => [userId, values]).sort()).toEqual(
    [1, 2, 3, 4, 5].map((n) => [`u${n}`, undefined]),
  );
  expect(recorded).toEqual([
    { chunk: 0, unmatched: [] },
    { chunk: 1, unmatched: [2] },
  ]);
  const pages = t.batches.filter(({ notificationId }) => notificationId === end.notificationId);
  expect(pages.map(({ batchId }) => Number(batchId.split("/")[1]) / pagesOfExpansion)).toEqual([0, 1]);
  expect(reads).toEqual([0, 1]);
});

test("a chunk that is stored after it was asked for is read at its turn", async () => {
  await seedUsers(2);
  chunks = [chunkOf(1, 1)];
  onRecord = async (page) => {
    if (page !== 0) return;
    await eventually(() => expect(reads).toEqual([0, 1]), { timeoutMs: 4_000 });
    chunks.push(chunkOf(2, 2, true));
  };
  const { devices } = await expanded(await send());
  expect(devices.map(({ userId }) => userId).sort()).toEqual(["u1", "u2"]);
  expect(reads).toEqual([0, 1, 1]);
});

test("devices that were read more than two seconds ago are read again", async () => {
  const [first, second] = (await seedUsers(2)) as [DeviceId, DeviceId];
  chunks = [chunkOf(1, 1), chunkOf(2, 2, true)];
  let readAt: number | undefined;
  onRecord = async (page) => {
    if (page !== 0) return;
    if (readAt === undefined) {
      await eventually(() => expect(reads).toContain(1), { timeoutMs: 4_000 });
      readAt = performance.now();
    } else await t.setStatus([second], "inactive");
    if (performance.now() < readAt + 2_500) throw new HeraldError("service-unavailable", "dispatch restarts");
  };
  const { end, devices } = await expanded(await send());
  expect(end).toMatchObject({ devices: 1 });
  expect(devices.map(({ id }) => id)).toEqual([first]);
});

test("a chunk with a user of very many devices has several pages, which repeat as they were, and is recorded once", async () => {
  const crowd = 11_000;
  const device = (user: string, at: number) => ({
    token: `${user}${at}`,
    platform: "ios" as const,
    user: { by: "project" as const, userId: user },
  });
  // Before and behind the crowd there are others, with and without devices.
  await t.seed([
    ...Array.from({ length: crowd }, (_, at) => device("u3", at)),
    ...["u1", "u5", "u8"].flatMap((user) => [device(user, 0), device(user, 1)]),
  ]);
  chunks = [chunkOf(1, 7), chunkOf(8, 9, true)];
  const id = await send();
  const { end, devices } = await expanded(id);
  expect(end.devices).toBe(crowd + 6);
  expect(new Set(devices.map(({ id: one }) => one)).size).toBe(crowd + 6);
  expect(recorded).toEqual([
    { chunk: 0, unmatched: [1, 3, 5, 6] },
    { chunk: 1, unmatched: [1] },
  ]);

  const pages = t.registry.db.collection<{ _id: string; devices: number; to?: { line: number; after?: DeviceId } }>(
    "expansions",
  );
  const all = await pages.find({ notificationId: id }).sort({ _id: 1 }).toArray();
  expect(all.length).toBeGreaterThan(3);
  for (const { devices: read } of all) expect(read).toBeLessThanOrEqual(5_000);
  const split = all.find(({ to }) => to?.after !== undefined);
  const page = Number(split?._id.split("/")[1]);
  const before = all[page - 1]?.to ?? { line: 0 };

  // It is partitioned again after devices within the page and behind it have changed.
  const { bus, db } = t.registry;
  const [audience, expansions] = [createAudienceStore(db), createExpandedPageStore(db)];
  const partition = createPartitionRecipients({ bus, audience, expansions, now: () => new Date() });
  const part = { ...before, unmatched: [] };
  const repeat = async () => {
    const data = t.message([], { recipients: "user", notificationId: id, page, part });
    return (await partition(data, "user"))?.batches.map((batch) => batch.devices.map(({ id: one }) => one)) ?? [];
  };
  const ids = await repeat();
  expect(
    t.batches.filter(({ batchId }) => batchId.startsWith(`${id}/${page}/`)).flatMap((one) => one.devices),
  ).toHaveLength(ids.flat().length);
  await t.setStatus(ids.flat().slice(0, 3), "inactive");
  await t.seed(Array.from({ length: 5 }, (_, at) => device("u3", crowd + at)));
  expect((await repeat()).map(sorted)).toEqual(ids.map((of, at) => sorted(at === 0 ? of.slice(3) : of)));
});
