import { sendRequest } from "@herald/bus";
import { deliveryRequests, type ProjectId, ProviderPausedV1, providerRequests } from "@herald/contracts";
import { eventually } from "@herald/testing";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { type DispatchTest, device, startDispatchTest } from "./dispatch-fixture.ts";
import { putOther, serviceAccount } from "./other-providers-fixture.ts";

let dispatch: DispatchTest;
beforeAll(async () => {
  dispatch = await startDispatchTest();
});
afterAll(() => dispatch.stop());
beforeEach(() => dispatch.simulators.clear());

const put = (projectId: ProjectId, provider: "fcm" | "webpush", settings: Record<string, unknown>) =>
  putOther(dispatch, projectId, provider, settings);

test("FCM: registration tokens and installation ids get it, dead ones are retired", async () => {
  const { project, send, partition, final, simulators } = dispatch;
  const projectId = await project();
  expect(await put(projectId, "fcm", { service_account: serviceAccount })).toMatchObject({
    settings: { project_id: "herald-tests" },
    status: "active",
  });
  simulators.script([{ provider: "fcm", tokenPrefix: "dead", status: 404, reason: "UNREGISTERED" }]);
  const byToken = device("", { token: "token-of-one" });
  const byFid = device("", { token: "fidOfTheOtherDevice012", tokenKind: "fid" });
  const dead = device("", { token: "dead-token" });
  const id = await send(projectId, {}, { body: "World", data: { k: "v" } });
  const batch = [byToken, byFid, dead].sort((one, other) => (one.id < other.id ? -1 : 1));
  await partition(projectId, id, [batch], { platform: "android" });
  expect(await final(projectId, id)).toMatchObject({
    counts: { devices: 3, accepted: 2, failed: 1 },
    failures: { unregistered: 1 },
  });
  const arrived = simulators.pushes({ provider: "fcm", status: 200 });
  expect(arrived.map(({ token }) => token).sort()).toEqual([byFid.token, byToken.token].sort());
  expect(JSON.stringify(arrived[0]?.payload)).toContain(id);

  const deliveries = await dispatch.deliveries(projectId, id);
  const named = deliveries.filter(({ status }) => status === "accepted").map(({ provider_id }) => provider_id);
  expect(new Set(named).size).toBe(2);
  for (const name of named) expect(name).toMatch(/^projects\/herald-tests\/messages\/0:/);
  expect(deliveries.find(({ device_id }) => device_id === dead.id)).not.toHaveProperty("provider_id");
  const { delivery, attempts } = await sendRequest(dispatch.bus, deliveryRequests.trace, {
    projectId,
    notificationId: id,
    deviceId: byFid.id,
  });
  expect(delivery?.provider_id).toBe(deliveries.find(({ device_id }) => device_id === byFid.id)?.provider_id);
  expect(attempts).toMatchObject([{ outcome: "accepted", provider_id: delivery?.provider_id }]);
});

test("Web Push: a key pair is made and kept, and what arrives can be decrypted", async () => {
  const { project, send, partition, final, simulators } = dispatch;
  const projectId = await project();
  const made = await put(projectId, "webpush", { subject: "mailto:ops@example.com" });
  const again = await put(projectId, "webpush", { subject: "mailto:other@example.com" });
  expect(made.settings.public_key).toEqual(expect.any(String));
  expect(again.settings).toMatchObject({ subject: "mailto:other@example.com", public_key: made.settings.public_key });

  const applicationServerKey = String(made.settings.public_key);
  const { endpoint, keys } = simulators.webpush.subscribe({ applicationServerKey });
  const id = await send(projectId, {}, { body: "World" });
  const browser = device("", { token: endpoint, keys });
  const stranger = device("", { token: "https://127.0.0.1/internal", keys });
  await partition(projectId, id, [[browser, stranger]], { platform: "web" });
  expect(await final(projectId, id)).toMatchObject({
    counts: { devices: 2, accepted: 1, failed: 1 },
    failures: { "endpoint-forbidden": 1 },
  });
  expect(simulators.pushes({ provider: "webpush" })).toMatchObject([
    { payload: { notification_id: id, notification: { body: "World" } } },
  ]);
  expect(await dispatch.deliveries(projectId, id)).toContainEqual(
    expect.objectContaining({ device_id: browser.id, provider_id: expect.stringContaining("/message/") }),
  );
});

test("a stranger's token fails alone: it does not pause a provider whose credential is good", async () => {
  const { project, send, partition, final, simulators, bus } = dispatch;
  const projectId = await project();
  await put(projectId, "fcm", { service_account: serviceAccount });
  simulators.script([{ provider: "fcm", tokenPrefix: "tokenMismatch", status: 403, reason: "SENDER_ID_MISMATCH" }]);
  const of = (token: string) => device("", { token });
  const id = await send(projectId);
  await partition(projectId, id, [[of("tokenMismatch-1"), of("own-1"), of("tokenMismatch-2")]], {
    platform: "android",
  });
  expect(await final(projectId, id)).toMatchObject({
    counts: { devices: 3, accepted: 1, failed: 2 },
    failures: { "topic-mismatch": 2 },
  });
  // A send to the stranger's device alone says nothing about the credential either.
  const alone = await send(projectId);
  await partition(projectId, alone, [[of("tokenMismatch-3")]], { platform: "android" });
  expect(await final(projectId, alone)).toMatchObject({ failures: { "topic-mismatch": 1 } });
  expect(await sendRequest(bus, providerRequests.get, { projectId, provider: "fcm" })).toMatchObject({
    status: "active",
  });
  const stored = await dispatch.database.client
    .db(dispatch.database.name)
    .collection("credentials")
    .findOne({ projectId, provider: "fcm" });
  expect(stored).toMatchObject({ provenAt: expect.any(Date) });
});

test("a credential that fits no token fails each device by itself, and the provider says what to check", async () => {
  const { project, send, partition, final, simulators, bus } = dispatch;
  const projectId = await project();
  await put(projectId, "fcm", { service_account: serviceAccount });
  const view = () => sendRequest(bus, providerRequests.get, { projectId, provider: "fcm" });
  simulators.script([{ provider: "fcm", status: 403, reason: "SENDER_ID_MISMATCH" }]);
  const everyone = Array.from({ length: 120 }, (_, index) => device("", { token: `token-${index}` }));
  const id = await send(projectId);
  await partition(projectId, id, [everyone], { platform: "android" });
  expect(await final(projectId, id)).toMatchObject({ failures: { "topic-mismatch": 120 } });
  await eventually(async () =>
    expect(await view()).toMatchObject({
      status: "active",
      problems: [{ reason: "credential-unproven", detail: expect.stringContaining("SENDER_ID_MISMATCH") }],
    }),
  );
  simulators.script([]);
  const next = await send(projectId);
  await partition(projectId, next, [everyone.slice(0, 1)], { platform: "android" });
  expect(await final(projectId, next)).toMatchObject({ counts: { accepted: 1 } });
  await eventually(async () => expect(await view()).not.toHaveProperty("problems"));
});

test("FCM sends to iOS devices that name it; a paused FCM keeps them, not those of APNs, and new settings send what waited", async () => {
  const { project, send, partition, final, simulators, rows, bus } = dispatch;
  const projectId = await project();
  await put(projectId, "fcm", { service_account: serviceAccount });
  simulators.script([{ provider: "fcm", status: 401, reason: "UNAUTHENTICATED" }]);
  const content = { title: "Hello", body: "World", badge: 2, link_to: "/news", data: { k: "v" } };
  const id = await send(projectId, {}, content);
  const byFcm = device("", { token: "fcm-token-of-an-iphone" });
  await partition(projectId, id, [[byFcm]], { platform: "ios", provider: "fcm" });
  await eventually(async () =>
    expect(await sendRequest(bus, providerRequests.get, { projectId, provider: "fcm" })).toMatchObject({
      status: "paused",
    }),
  );
  await eventually(async () => expect(await rows(id)).toContainEqual(expect.objectContaining({ state: "waiting" })));
  const beside = await send(projectId);
  await partition(projectId, beside, [[device("")]], { platform: "ios" });
  expect(await final(projectId, beside)).toMatchObject({ counts: { accepted: 1 } });

  simulators.script([]);
  await put(projectId, "fcm", { service_account: serviceAccount });
  expect(await final(projectId, id)).toMatchObject({ counts: { devices: 1, accepted: 1 } });
  const [push] = simulators.pushes({ provider: "fcm", status: 200 });
  expect(push).toMatchObject({
    token: byFcm.token,
    payload: {
      data: { k: "v", link_to: "/news", notification_id: id },
      apns: { payload: { aps: { alert: { title: "Hello", body: "World" }, badge: 2 } } },
    },
  });
  const [delivery] = await dispatch.deliveries(projectId, id);
  expect(delivery).toMatchObject({
    platform: "ios",
    provider_id: expect.stringMatching(/^projects\/herald-tests\/messages\/0:/),
  });
});

test("FCM's refusal for an app without an Apple key fails only its iOS devices, and delays no Android device", async () => {
  const { project, send, partition, final, simulators, bus } = dispatch;
  const projectId = await project();
  await put(projectId, "fcm", { service_account: serviceAccount });
  simulators.script([
    { provider: "fcm", tokenPrefix: "iphone", status: 401, reason: "THIRD_PARTY_AUTH_ERROR" },
    { provider: "fcm", tokenPrefix: "slow", status: 503, headers: { "retry-after": "3600" } },
  ]);
  const of = (token: string) => device("", { token });
  const refused = await send(projectId);
  await partition(projectId, refused, [[of("iphone-1")]], { platform: "ios", provider: "fcm" });
  expect(await final(projectId, refused)).toMatchObject({ failures: { "token-kind-mismatch": 1 } });
  const slow = await send(projectId);
  await partition(projectId, slow, [[of("slow-1")]], { platform: "ios", provider: "fcm" });
  await eventually(async () =>
    expect(await dispatch.rows(slow)).toContainEqual(expect.objectContaining({ state: "waiting" })),
  );
  const android = await send(projectId);
  await partition(projectId, android, [[of("android-1")]], { platform: "android" });
  expect(await final(projectId, android)).toMatchObject({ counts: { accepted: 1 } });
  expect(await sendRequest(bus, providerRequests.get, { projectId, provider: "fcm" })).toMatchObject({
    status: "active",
  });
});

test.each([
  {
    rule: {
      provider: "fcm-token",
      status: 400,
      body: JSON.stringify({
        error: "invalid_grant",
        error_description: "Invalid JWT: Token must be short-lived\u0007",
      }),
    },
    says: "invalid_grant: Invalid JWT: Token must be short-lived?",
    check: "clock",
  },
  {
    rule: {
      provider: "fcm",
      status: 403,
      body: JSON.stringify({ error: { status: "PERMISSION_DENIED", message: "The API has not been used before." } }),
    },
    says: "PERMISSION_DENIED: The API has not been used before.",
    check: "Enable the Firebase Cloud Messaging API",
  },
])("what Google says beside its code is shown wherever the refusal is: $says", async ({ rule, says, check }) => {
  const { project, send, partition, final, simulators, bus, lastEvent } = dispatch;
  const projectId = await project();
  await put(projectId, "fcm", { service_account: serviceAccount });
  simulators.script([rule]);
  const android = device("", { token: "android-token" });
  const id = await send(projectId);
  await partition(projectId, id, [[android]], { platform: "android" });
  const refused = { status: "paused", paused_reason: says, paused_detail: expect.stringContaining(check) };
  await eventually(async () => {
    const view = await sendRequest(bus, providerRequests.get, { projectId, provider: "fcm" });
    if (view.status === "active") dispatch.pass(3_000);
    expect(view).toMatchObject(refused);
  });
  await eventually(async () =>
    expect(await lastEvent(projectId, ProviderPausedV1)).toMatchObject({ provider_reason: says }),
  );
  await eventually(async () => {
    const asked = { projectId, notificationId: id, deviceId: android.id };
    const { attempts } = await sendRequest(bus, deliveryRequests.trace, asked);
    expect(attempts.at(-1)).toMatchObject({ outcome: "paused", provider_reason: says });
  });
  const push = { token: "another-token" };
  expect(await sendRequest(bus, providerRequests.test, { projectId, provider: "fcm", push })).toMatchObject({
    ...{ result: "credential-refused", provider_reason: says, detail: expect.stringContaining(check) },
  });
  simulators.script([]);
  dispatch.pass(64_000);
  expect(await final(projectId, id)).toMatchObject({ counts: { accepted: 1 } });
});
