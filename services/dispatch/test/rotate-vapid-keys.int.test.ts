import { closeBus, connectBus, openBucket, sendRequest, serviceAccess } from "@herald/bus";
import {
  type ProjectId,
  ProvidersRecord,
  projectProvidersKey,
  providerRequests,
  vapidKeyId,
  vapidKeyRequests,
} from "@herald/contracts";
import { createLogger } from "@herald/kit";
import { eventually } from "@herald/testing";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { createProviderRecords } from "../src/requests/providers.ts";
import { createCredentialStore } from "../src/stores/credential-store.ts";
import { type DispatchTest, device, startDispatchTest } from "./dispatch-fixture.ts";

const silent = createLogger({ service: "test", level: "silent" });
let dispatch: DispatchTest;
beforeAll(async () => {
  dispatch = await startDispatchTest();
});
afterAll(() => dispatch.stop());
beforeEach(() => dispatch.simulators.clear());

const subject = "mailto:ops@example.com";
const put = async (projectId: ProjectId, settings: Record<string, unknown> = {}) => {
  const { bus, simulators } = dispatch;
  const elsewhere = { endpoint: simulators.webpush.url, ca: simulators.ca };
  const view = await sendRequest(bus, providerRequests.put, {
    projectId,
    provider: "webpush",
    settings: { subject, ...elsewhere, ...settings },
  });
  return String(view.settings.public_key);
};

/** A browser that subscribed with a key. `named`: the key id that registry stored. */
const browser = (applicationServerKey: string, named: string | undefined = vapidKeyId(applicationServerKey)) => {
  const { endpoint, keys } = dispatch.simulators.webpush.subscribe({ applicationServerKey });
  return device("", { token: endpoint, keys, ...(named && { vapidKeyId: named }) });
};

const sendTo = async (projectId: ProjectId, devices: ReturnType<typeof device>[]) => {
  const id = await dispatch.send(projectId);
  const sorted = devices.toSorted((one, other) => (one.id < other.id ? -1 : 1));
  await dispatch.partition(projectId, id, [sorted], { platform: "web" });
  return dispatch.final(projectId, id);
};

const record = async (projectId: ProjectId) =>
  (await openBucket(dispatch.bus, "push_providers", ProvidersRecord).get(projectProvidersKey(projectId)))?.value;

test("old and new subscribers get every push, before, between and after the steps of a rotation", async () => {
  const { bus, project } = dispatch;
  const projectId = await project();
  const old = await put(projectId);
  const { fingerprint } = await sendRequest(bus, providerRequests.get, { projectId, provider: "webpush" });
  const unnamed = browser(old, "");
  const everyone = [browser(old), unnamed];
  expect(await sendTo(projectId, everyone)).toMatchObject({ counts: { accepted: 2 } });

  const { key, created } = await sendRequest(bus, vapidKeyRequests.stage, { projectId });
  expect([created, key.status]).toEqual([true, "next"]);
  expect(await sendRequest(bus, vapidKeyRequests.stage, { projectId })).toEqual({ key, created: false });
  everyone.push(browser(key.public_key));
  expect(await sendTo(projectId, everyone)).toMatchObject({ counts: { accepted: 3 } });

  expect(await sendRequest(bus, vapidKeyRequests.promote, { projectId, keyId: key.id })).toMatchObject({
    status: "current",
  });
  expect(await sendRequest(bus, providerRequests.get, { projectId, provider: "webpush" })).toMatchObject({
    fingerprint,
  });
  everyone.push(browser(key.public_key), browser(old));
  expect(await sendTo(projectId, everyone)).toMatchObject({ counts: { accepted: 5 } });
  expect((await record(projectId))?.vapidKeys).toEqual([
    { id: key.id, publicKey: key.public_key, status: "current" },
    { id: vapidKeyId(old), publicKey: old, status: "earlier" },
  ]);

  await put(projectId, { site: "https://shop.example.com" });
  expect(await record(projectId)).toMatchObject({ site: "https://shop.example.com" });
  await put(projectId);
  expect(await record(projectId)).not.toHaveProperty("site");

  await sendRequest(bus, vapidKeyRequests.retire, { projectId, keyId: vapidKeyId(old) });
  expect(await sendTo(projectId, everyone)).toMatchObject({
    counts: { accepted: 2, failed: 3 },
    failures: { "vapid-key-retired": 3 },
  });
  expect(await sendRequest(bus, vapidKeyRequests.list, { projectId })).toMatchObject({
    keys: [{ id: key.id, status: "current" }],
    retired: [vapidKeyId(old)],
    unnamed: vapidKeyId(old),
  });
});

test("new settings keep every key, and another pair is a rotation too", async () => {
  const { bus, project } = dispatch;
  const projectId = await project();
  const old = await put(projectId);
  const { key } = await sendRequest(bus, vapidKeyRequests.stage, { projectId });
  expect(await put(projectId, { subject: "https://example.com/contact" })).toBe(old);
  await sendRequest(bus, vapidKeyRequests.promote, { projectId, keyId: key.id });
  const everyone = [browser(old), browser(key.public_key), browser(old, "")];
  expect(await put(projectId, { subject: "mailto:other@example.com" })).toBe(key.public_key);
  expect(await sendTo(projectId, everyone)).toMatchObject({ counts: { accepted: 3 } });
  const view = await sendRequest(bus, providerRequests.get, { projectId, provider: "webpush" });
  expect(view.settings.keys).toMatchObject([{ status: "current" }, { status: "earlier" }]);
});

test("concurrent steps of a rotation stage one key and promote it", async () => {
  const { bus, project } = dispatch;
  const projectId = await project();
  await put(projectId);
  const staged = await Promise.all(
    Array.from({ length: 4 }, () => sendRequest(bus, vapidKeyRequests.stage, { projectId })),
  );
  expect(new Set(staged.map(({ key }) => key.id)).size).toBe(1);
  await Promise.all([
    put(projectId, { subject: "mailto:other@example.com" }),
    sendRequest(bus, vapidKeyRequests.promote, { projectId, keyId: staged[0]?.key.id ?? "" }),
  ]);
  const { keys } = await sendRequest(bus, vapidKeyRequests.list, { projectId });
  expect(keys.map(({ id, status }) => [id, status])).toEqual([
    [staged[0]?.key.id, "current"],
    [expect.any(String), "earlier"],
  ]);
});

test("a retired key does not pause the provider", async () => {
  const { bus, project } = dispatch;
  const projectId = await project();
  const old = await put(projectId);
  const { key } = await sendRequest(bus, vapidKeyRequests.stage, { projectId });
  await sendRequest(bus, vapidKeyRequests.promote, { projectId, keyId: key.id });
  await sendRequest(bus, vapidKeyRequests.retire, { projectId, keyId: vapidKeyId(old) });
  expect(await sendTo(projectId, [browser(old)])).toMatchObject({ failures: { "vapid-key-retired": 1 } });
  const credentials = dispatch.database.client.db(dispatch.database.name).collection("credentials");
  const stored = await credentials.findOne({ projectId, provider: "webpush" });
  // A push that Herald refused itself proves nothing about the credential either.
  expect([stored?.paused, stored?.provenAt]).toEqual([undefined, undefined]);
  expect(await sendTo(projectId, [browser(key.public_key)])).toMatchObject({ counts: { accepted: 1 } });
  await eventually(async () =>
    expect(await credentials.findOne({ projectId, provider: "webpush" })).toHaveProperty("provenAt"),
  );
});

test("settings that are deleted and put again send to subscriptions that name an unknown key", async () => {
  const { bus, project } = dispatch;
  const projectId = await project();
  await put(projectId);
  const credentials = dispatch.database.client.db(dispatch.database.name).collection("credentials");
  await credentials.deleteOne({ projectId, provider: "webpush" });
  const again = await put(projectId);
  expect(await sendTo(projectId, [browser(again, "0123456789abcdef")])).toMatchObject({ counts: { accepted: 1 } });
  await expect(
    sendRequest(bus, vapidKeyRequests.retire, { projectId, keyId: vapidKeyId(again) }),
  ).rejects.toMatchObject({
    code: "vapid-key-current",
  });
});

test("a record that the broker lost is repaired, so that gateways know the keys again", async () => {
  const { database, config, project } = dispatch;
  const projectId = await project();
  const publicKey = await put(projectId);
  const bus = await connectBus({ ...serviceAccess(config, "dispatch"), log: silent });
  const db = database.client.db(database.name);
  const bucket = openBucket(bus, "push_providers", ProvidersRecord);
  await bucket.delete(projectProvidersKey(projectId));
  const records = createProviderRecords(bucket, createCredentialStore(db, config.HERALD_DISPATCH_MASTER_KEYS));
  const { signal } = new AbortController();
  expect(await records.reconcile(signal)).toBe(1);
  expect((await record(projectId))?.vapidKeys).toEqual([{ id: vapidKeyId(publicKey), publicKey, status: "current" }]);
  expect(await records.reconcile(signal)).toBe(0);
  await closeBus(bus);
});

test.each([
  [{ private_key: "x" }, /^key\.private_key: must be a VAPID private key/],
  [{ private_key: "", public_key: "x" }, /^key\.private_key: must be/],
])("a pair that does not parse is refused: %j", async (pair, words) => {
  const { bus, project } = dispatch;
  const projectId = await project();
  await expect(sendRequest(bus, vapidKeyRequests.stage, { projectId, pair })).rejects.toMatchObject({
    code: "validation-failed",
    messages: [expect.stringMatching(words)],
  });
  await expect(sendRequest(bus, vapidKeyRequests.list, { projectId })).rejects.toMatchObject({
    code: "provider-not-found",
  });
});
