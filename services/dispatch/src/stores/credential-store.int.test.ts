import { randomBytes } from "node:crypto";
import { newProjectId } from "@herald/contracts";
import { type FreshDatabase, freshDatabase } from "@herald/testing";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createCredentialStore, credentialCollection } from "./credential-store.ts";

let database: FreshDatabase;
let store: ReturnType<typeof createCredentialStore>;
beforeAll(async () => {
  database = await freshDatabase({ service: "dispatch" });
  const masterKeys = [{ id: "m1", secret: randomBytes(32) }] as const;
  store = createCredentialStore(db(), masterKeys);
  await store.ensureIndexes();
});
afterAll(() => database.drop());

const db = () => database.client.db(database.name);
const start = new Date("2030-01-01T00:00:00.000Z");
const after = (seconds: number) => new Date(start.getTime() + seconds * 1_000);
const why = { reason: "credential-refused", providerReason: "InvalidProviderToken" };

const stored = async () => {
  const projectId = newProjectId(new Date());
  const document = await store.put(projectId, "apns", { settings: {}, view: {} }, start, null);
  if (!document) throw new Error("it was not stored");
  const read = async () => (await store.find(projectId, "apns")) ?? document;
  return { document, read };
};

test("one of two processes claims a trial that is due, and the next one is planned", async () => {
  const { document, read } = await stored();
  expect(await store.pause(document, why, start, start)).toBe(true);
  expect(await store.claimTrial(await read(), after(59))).toBeUndefined();
  let due = 60;
  for (const minutes of [2, 5, 15, 15]) {
    const known = await read();
    const next = after(due + minutes * 60);
    const claims = await Promise.all([1, 2, 3].map(() => store.claimTrial(known, after(due))));
    expect(claims.filter(Boolean)).toEqual([next]);
    due += minutes * 60;
  }
});

test("what was refused before another process resumed the provider does not pause it again", async () => {
  const { document } = await stored();
  const resume = () => Promise.all([store.resume(document, after(70)), store.resume(document, after(70))]);
  expect(await store.pause(document, why, after(5), start)).toBe(true);
  expect((await resume()).filter(Boolean)).toHaveLength(1);
  expect(await store.pause(document, why, after(71), after(69))).toBe(false);
  expect(await store.pause(document, why, after(80), after(75))).toBe(true);
});

test("each pause and each resumption of a version has its own event", async () => {
  const { document } = await stored();
  for (const seconds of [10, 100]) {
    expect(await store.pause(document, why, after(seconds), after(seconds - 5))).toBe(true);
    expect(await store.resume(document, after(seconds + 60))).toBe(true);
  }
  const { outbox = [] } = (await credentialCollection(db()).findOne({ _id: document._id })) ?? {};
  expect(outbox.map(({ event }) => event)).toEqual([
    ...["ProviderPausedV1", "ProviderResumedV1", "ProviderPausedV1", "ProviderResumedV1"],
  ]);
  expect(new Set(outbox.map(({ id }) => id)).size).toBe(4);
});

test("a pause of settings that cannot be used has no trials, and no push resumes it", async () => {
  const { document, read } = await stored();
  expect(await store.pause(document, { reason: "settings-unusable", providerReason: "" }, start)).toBe(true);
  expect(await store.claimTrial(await read(), after(3_600))).toBeUndefined();
  expect(await store.resume(document, after(3_600))).toBe(false);
});
