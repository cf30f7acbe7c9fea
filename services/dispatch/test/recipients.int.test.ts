import { sendRequest } from "@herald/bus";
import {
  newProjectId,
  type PageRequest,
  type RecipientLine,
  readRecipientKeys,
  recipientLimits,
  recipientRequests,
  userKey,
} from "@herald/contracts";
import { eventually } from "@herald/testing";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { createUserEraser } from "../src/stores/erase-user.ts";
import { notificationCollection } from "../src/stores/notification-document.ts";
import { createNotificationStore } from "../src/stores/notification-store.ts";
import { createRecipientStore } from "../src/stores/recipient-store.ts";
import { createSmallSendStore } from "../src/stores/small-send-store.ts";
import { type DispatchTest, device, nextNotificationId, startDispatchTest } from "./dispatch-fixture.ts";

let dispatch: DispatchTest;
beforeAll(async () => {
  dispatch = await startDispatchTest();
});
afterAll(() => dispatch.stop());
afterEach(() => {
  dispatch.clock.ahead = 0;
});

const line = (n: number, values: RecipientLine["values"] = {}): RecipientLine => ({ n, key: `u${n}`, values });
const textsOf = (lines: readonly RecipientLine[]) => ({
  lines: JSON.stringify(lines),
  keys: JSON.stringify(lines.map(({ key }) => key)),
});
const personal = {
  texts: JSON.stringify({ title: { nodes: ["Hi ", { output: { from: { path: ["name"] }, filters: [] } }] } }),
  locale: "en",
  values: {},
};
const content = { targets: [], recipients: { kind: "user", lines: 3 } } as const;

const send = async (recipients: RecipientLine[][]) => {
  const projectId = await dispatch.project();
  const id = await dispatch.send(
    projectId,
    { personal, recipients },
    { ...content, title: "Hi {{ name }}", targets: [] },
  );
  const read = async (page: number) => {
    const found = await sendRequest(dispatch.bus, recipientRequests.read, {
      projectId,
      notificationId: id,
      chunk: page,
    });
    return found.state === "stored" ? { ...found, keys: readRecipientKeys(found.keys) } : found;
  };
  await eventually(async () => expect((await read(0)).state).toBe("stored"));
  return { projectId, id, read };
};
const store = () => createRecipientStore(dispatch.database.client.db(dispatch.database.name));

test("chunks are read in order until the notification ends, and keep no values then", async () => {
  const { projectId, id, read } = await send([[line(1, { name: "Ann" }), line(2)], [line(3, { name: "Cid" })]]);
  expect(await read(0)).toEqual({ state: "stored", keys: ["u1", "u2"], last: false });
  expect(await read(1)).toEqual({ state: "stored", keys: ["u3"], last: true });
  expect(await read(2)).toEqual({ state: "waiting" });
  const record = (unmatched: number[]) =>
    sendRequest(dispatch.bus, recipientRequests.record, { projectId, notificationId: id, chunk: 0, unmatched });
  await record([1]);
  await record([]);
  const one = { projectId, notificationId: id };
  const { recipients } = await sendRequest(dispatch.bus, recipientRequests.get, one);
  expect(recipients).toMatchObject({ lines_stored: 3, recipients: 3, processed: 2, unmatched: 1, complete: true });
  const page = { by: "page", page: 1, perPage: 10 } as const;
  const errors = await sendRequest(dispatch.bus, recipientRequests.errors, { ...one, page });
  expect(errors).toMatchObject({ data: [{ line: 2, code: "unmatched" }], pagination: { count: 1 } });

  // The third one is a user of another chunk.
  const [ann, lost, gone] = [
    device("00", { userId: "u1" }),
    device("00", { userId: "u3" }),
    device("00", { userId: "u2" }),
  ];
  await dispatch.partition(projectId, id, [[ann, lost, gone].sort((one, other) => (one.id < other.id ? -1 : 1))]);
  expect(await dispatch.final(projectId, id)).toMatchObject({
    counts: { devices: 3, accepted: 1, failed: 1, skipped: 1 },
    failures: { "values-lost": 1 },
    skips: { "value-missing": 1 },
  });
  expect(await read(0)).toEqual({ state: "ended" });
  const chunks = dispatch.database.client.db(dispatch.database.name).collection("recipients");
  const values = { $or: [{ content: { $exists: true } }, { keys: { $exists: true } }] };
  expect(await chunks.find({ ...values, notificationId: id }).toArray()).toEqual([]);
});

test("batches that come after a lost expansion still find the values of their recipients", async () => {
  const { projectId, id } = await send([[line(1, { name: "Ann" }), line(2, { name: "Bea" })]]);
  const notifications = createNotificationStore(dispatch.database.client.db(dispatch.database.name));
  await notifications.expansionLost(projectId, id, dispatch.now());
  dispatch.pass(2 * 60_000);
  await dispatch.final(projectId, id);
  expect(await store().lines(projectId, id, 0)).toContain("Bea");
});

test("an erased user's values are removed, and the others' places stay", async () => {
  const { projectId, id, read } = await send([[line(1, { name: "Ann" }), line(2, { name: "Bea" })]]);
  const erased = { projectId, key: userKey(projectId, "u1"), at: new Date() };
  await store().erase(erased);
  expect(await read(0)).toMatchObject({ keys: ["", "u2"] });
  expect(JSON.parse(await store().lines(projectId, id, 0))).toEqual([
    { n: 1, key: "", values: {} },
    line(2, { name: "Bea" }),
  ]);
  await store().erase({ ...erased, key: userKey(projectId, "u2"), at: new Date(0) });
  expect(await read(0)).toMatchObject({ keys: ["", "u2"] });
});

const [minute, day] = [60_000, 86_400_000];

/** A notification whose recipients are uploaded. */
const awaiting = async () => {
  const projectId = await dispatch.project();
  const id = await dispatch.send(
    projectId,
    { personal, expiresAt: new Date(dispatch.now().getTime() + 30 * day).toISOString() },
    { title: "Hi {{ name }}", targets: [], recipients: { kind: "user", upload: true } },
  );
  const one = { projectId, notificationId: id };
  const read = (chunk: number) => sendRequest(dispatch.bus, recipientRequests.read, { ...one, chunk });
  await eventually(async () => expect((await read(0)).state).toBe("waiting"));
  const append = (firstLine: number, count: number, last = false) =>
    sendRequest(dispatch.bus, recipientRequests.append, {
      ...{ ...one, kind: "user", firstLine, lastLine: firstLine + count - 1, recipients: count, last },
      ...textsOf(Array.from({ length: count }, (_, at) => line(firstLine + at))),
      ...{ errors: [], refused: 0, duplicates: 0 },
    });
  const progress = async () => (await sendRequest(dispatch.bus, recipientRequests.get, one)).recipients;
  return { ...one, read, append, progress };
};

test("an upload ends 24 hours after its last line, without the rest of its file", async () => {
  const { read, append, progress } = await awaiting();
  dispatch.stopClock();
  try {
    await append(1, 2);
    dispatch.pass(day - minute);
    expect(await read(1)).toEqual({ state: "waiting" });
    await append(3, 1);
    // The time counts from the last line.
    dispatch.pass(day - minute);
    expect(await read(2)).toEqual({ state: "waiting" });
    dispatch.pass(2 * minute);
    expect(await read(2)).toEqual({ state: "stored", keys: "[]", last: true });
    expect(await progress()).toMatchObject({ lines_stored: 3, recipients: 3, complete: false });
    await expect(append(4, 1)).rejects.toMatchObject({ code: "recipients-complete" });
  } finally {
    dispatch.startClock();
  }
});

test("an erasure finds the only recipient of an upload before its lines are stored, and leaves what is for others", async () => {
  const { projectId, notificationId, append } = await awaiting();
  const db = dispatch.database.client.db(dispatch.database.name);
  // Its lines cannot be stored, as after a crash.
  const inItsPlace = { _id: `${notificationId}/000000` as never, projectId: "another" };
  await db.collection("recipients").insertOne(inItsPlace);
  await expect(append(1, 1, true)).rejects.toMatchObject({ code: "import-position-mismatch" });
  const find = () => notificationCollection(db).findOne({ _id: notificationId });
  expect((await find())?.userKeys).toEqual([userKey(projectId, "u1")]);
  await db.collection("recipients").deleteOne(inItsPlace);
  await append(1, 2, true);
  const erased = { projectId, key: userKey(projectId, "u1"), at: new Date(dispatch.now().getTime() + 1_000) };
  await createUserEraser(db, createSmallSendStore(db), store()).erase(erased);
  expect(await find()).toMatchObject({ userKeys: [], content: expect.stringContaining("Hi {{ name }}") });
});

test("recipients of a request that were lost end its list after ten minutes", async () => {
  const { projectId, id, read } = await send([[line(1)], [line(2)]]);
  const chunks = dispatch.database.client.db(dispatch.database.name).collection("recipients");
  await chunks.deleteOne({ notificationId: id, last: true });
  dispatch.pass(9 * minute);
  expect(await read(1)).toEqual({ state: "waiting" });
  dispatch.pass(2 * minute);
  expect(await read(1)).toEqual({ state: "stored", keys: [], last: true });
  const { recipients } = await sendRequest(dispatch.bus, recipientRequests.get, { projectId, notificationId: id });
  expect(recipients).toMatchObject({ recipients: 1, complete: false });
});

test("no more chunks are stored than may wait, and each follows the one before it", async () => {
  const { append, read } = await awaiting();
  for (let at = 0; at < recipientLimits.waitingChunks; at++) await append(at + 1, 1);
  const next = recipientLimits.waitingChunks + 1;
  await expect(append(next, 1)).rejects.toMatchObject({ code: "queue-full" });
  for (const wrong of [1, next - 1, next + 1])
    await expect(append(wrong, 1)).rejects.toMatchObject({ code: "import-position-mismatch" });
  expect((await read(0)).state).toBe("stored");
});

test("each chunk counts once, and a page of errors has the rows of its lines, however it is asked for", async () => {
  const projectId = newProjectId(new Date());
  const id = nextNotificationId();
  const of = { projectId, notificationId: id };
  const { append, latest, record, errors, progress } = store();
  const [pages, perPage] = [7, 10];
  const problem = (at: number) => ({
    line: at,
    field: "target",
    reason: "is no target",
    code: "invalid-value" as const,
  });
  for (let page = 0; page < pages; page++) {
    const first = page * perPage + 1;
    const lines = Array.from({ length: perPage - 1 }, (_, at) => line(first + 1 + at));
    const stored = await append(
      {
        ...{ ...of, kind: "user", firstLine: first, lastLine: first + perPage - 1, ...textsOf(lines) },
        // The third and the fourth chunk have no errors.
        errors: page === 2 || page === 3 ? [] : [problem(first)],
        ...{ recipients: perPage - 1, refused: 1, duplicates: 0, last: page === pages - 1 },
      },
      await latest(projectId, id),
      new Date(),
    );
    expect(stored).toBe(true);
  }
  // The last two chunks are not expanded yet; the first is recorded twice.
  const expanded = 5;
  for (let page = 0; page < expanded; page++) await record(projectId, id, page, page === 3 ? [] : [0, 5]);
  await record(projectId, id, 0, [0, 1, 2]);
  expect(await progress(projectId, id, expanded)).toMatchObject({
    last: { lastLine: 70, recipients: 63, refused: 7, errorsBefore: 5, last: true },
    ...{ processed: 45, unmatched: 8 },
  });
  const expected = [1, 2, 7, 11, 12, 17, 22, 27, 41, 42, 47, 51, 61];
  const { signal } = new AbortController();
  const read = async (request: PageRequest) => {
    const found = await errors(of, request, { pages: expanded, signal });
    return { ...found, lines: found.data.map(({ line }) => line) };
  };
  for (const size of [1, 2, 3, 5, 13, 100]) {
    const byNumber: number[] = [];
    for (let page = 1; page <= Math.ceil(expected.length / size); page++) {
      const found = await read({ by: "page", page, perPage: size });
      expect("pagination" in found && found.pagination.count).toBe(expected.length);
      byNumber.push(...found.lines);
    }
    expect(byNumber).toEqual(expected);
    const byKey: number[] = [];
    for (let after: string | null = ""; after !== null; ) {
      const found = await read({ by: "key", after, perPage: size });
      byKey.push(...found.lines);
      after = "next" in found ? found.next : null;
    }
    expect(byKey).toEqual(expected);
  }
  expect((await read({ by: "page", page: 9, perPage: 10 })).lines).toEqual([]);
  const gone = { pages: expanded, signal: AbortSignal.abort() };
  await expect(errors(of, { by: "key", after: "", perPage: 5 }, gone)).rejects.toThrow();
});
