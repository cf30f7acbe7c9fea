import { createHmac } from "node:crypto";
import {
  audienceRequests,
  type DeclaredKind,
  type DeviceId,
  deviceRequests,
  identityKeyRequests,
  kindRequests,
  newDeviceId,
  newIdentityKeyId,
  type ProjectId,
  preferenceRequests,
  projectRequests,
  projectRulesKey,
  userRequests,
} from "@herald/contracts";
import { eventually } from "@herald/testing";
import { beforeEach, describe, expect, test } from "vitest";
import { apnsToken, failure, useRegistry } from "./registry-fixture.ts";

let ahead = 0;
const registry = useRegistry({
  overrides: { now: () => new Date(Date.now() + ahead), copyEveryMs: 100 },
});
let projectId: ProjectId;

const declare = (kind: string, change: Partial<DeclaredKind> = {}) =>
  registry.ask(kindRequests.put, {
    projectId,
    kind: { kind, title: kind, on_by_default: true, critical: false, ...change },
  });
beforeEach(async () => {
  projectId = await registry.project();
  await declare("offers");
  await declare("tips", { on_by_default: false });
  await declare("alerts", { critical: true });
});

const put = (of: { device: DeviceId } | { user: string }, kinds: Record<string, boolean>, more = {}) =>
  registry.ask(preferenceRequests.put, { projectId, of, preferences: { kinds, ...more } });
const shown = ({ kinds }: Awaited<ReturnType<typeof put>>) => kinds.map(({ kind, on, set_by }) => [kind, on, set_by]);
const register = async (userId?: string): Promise<DeviceId> => {
  const token = apnsToken(`${projectId}${userId}${Math.random()}`);
  return (await registry.register(projectId, token, { ...(userId && { userId }) })).device.id;
};
const isOff = async (id: DeviceId, name = "offers", on = true) => {
  const sends = [{ targets: [`device:${id}`], rules: { kind: { name, on } } }];
  const answer = await registry.ask(audienceRequests.resolve, { projectId, sends, limit: 100 });
  return answer.sends[0]?.batches[0]?.devices[0]?.off === true;
};

describe("a device", () => {
  test("follows the defaults until it chooses; a choice replaces those before", async () => {
    const id = await register();
    const of = { device: id };
    const unset = [
      ["alerts", true, "default"],
      ["offers", true, "default"],
      ["tips", false, "default"],
    ];
    expect(shown(await registry.ask(preferenceRequests.get, { projectId, of }))).toEqual(unset);
    expect([await isOff(id), await isOff(id, "tips", false)]).toEqual([false, true]);
    expect(shown(await put(of, { offers: false, tips: true }))).toEqual([
      unset[0],
      ["offers", false, "device"],
      ["tips", true, "device"],
    ]);
    expect([await isOff(id), await isOff(id, "tips", false)]).toEqual([true, false]);
    expect(shown(await put(of, {}))).toEqual(unset);
    expect(await isOff(id)).toBe(false);
  });

  test("keeps its choices when it registers again, and does not take those of a longer name", async () => {
    await declare("offers-for-you");
    const token = apnsToken(projectId);
    const { device } = await registry.register(projectId, token);
    await put({ device: device.id }, { "offers-for-you": false });
    await registry.register(projectId, token, { metadata: { plan: "pro" } });
    expect([await isOff(device.id, "offers-for-you"), await isOff(device.id)]).toEqual([true, false]);
  });

  test("can choose neither a kind that is not declared, nor against a critical one", async () => {
    const of = { device: await register() };
    const refused = await failure(put(of, { spam: true, alerts: false, constructor: false }));
    expect(refused.code).toBe("validation-failed");
    expect(refused.messages.map((message) => message.split(":")[0])).toEqual([
      "preferences.kinds.spam",
      "preferences.kinds.alerts",
      "preferences.kinds.constructor",
    ]);
    await put(of, { alerts: true });
    const unknown = { device: newDeviceId(new Date()) };
    expect(await failure(put(unknown, {}))).toMatchObject({ code: "device-not-found" });
    expect(await failure(registry.ask(preferenceRequests.get, { projectId, of: unknown }))).toMatchObject({
      code: "device-not-found",
    });
  });
});

describe("a user", () => {
  test("chooses for all devices, also for those that log in later; off beats on", async () => {
    const first = await register("ann");
    expect(shown(await put({ user: "ann" }, { offers: false }))).toContainEqual(["offers", false, "user"]);
    const second = await register("ann");
    const other = await register("bob");
    await registry.ask(deviceRequests.put, {
      projectId,
      devices: [{ platform: "ios", token: apnsToken(`${projectId}put`), user_id: "ann" }],
    });
    expect([await isOff(first), await isOff(second), await isOff(other)]).toEqual([true, true, false]);
    await put({ device: first }, { offers: true });
    expect(shown(await registry.ask(preferenceRequests.get, { projectId, of: { device: first } }))).toContainEqual([
      "offers",
      false,
      "user",
    ]);
    await registry.ask(deviceRequests.change, { projectId, deviceId: other, change: { user_id: "ann" } });
    expect(await isOff(other)).toBe(true);
    await registry.ask(deviceRequests.change, { projectId, deviceId: other, change: { user_id: null } });
    expect(await isOff(other)).toBe(false);
    await put({ user: "ann" }, { offers: true });
    expect([await isOff(first), await isOff(second)]).toEqual([false, false]);
    const stored = registry.db.collection("devices");
    expect(await stored.countDocuments({ projectId, userId: "ann", userPreferences: ",+offers," })).toBe(3);
  });

  test("sets quiet hours, which sends ask for from then on", async () => {
    const id = await register("ann");
    const hours = { from: "21:30", to: "07:00" };
    expect(await put({ user: "ann" }, {}, { quiet_hours: hours })).toMatchObject({ quiet_hours: hours });
    expect((await registry.rules.get(projectRulesKey(projectId)))?.value).toMatchObject({ ownHours: true });
    const sends = [{ targets: [`device:${id}`], rules: { hours: true as const } }];
    const answer = await registry.ask(audienceRequests.resolve, { projectId, sends, limit: 100 });
    expect(answer.sends[0]?.batches[0]?.devices[0]).toMatchObject({ quiet: "21:30-07:00" });
    expect(await put({ user: "ann" }, {})).not.toHaveProperty("quiet_hours");
  });

  test("is found again by the sweep where a crash prevented the copy", async () => {
    const id = await register("ann");
    await put({ user: "ann" }, { offers: false });
    // As a process that died left it.
    await registry.db
      .collection<{ _id: string }>("devices")
      .updateOne({ _id: id }, { $unset: { userPreferences: 1, userPreferencesVersion: 1 } });
    expect(await isOff(id)).toBe(false);
    ahead += 61_000;
    await eventually(async () => expect(await isOff(id)).toBe(true));
    const left = () => registry.db.collection("userPreferences").countDocuments({ projectId, pending: true });
    await eventually(async () => expect(await left()).toBe(0));
  });

  test("that changes something at the moment of a login has it on the device", async () => {
    for (let round = 0; round < 20; round++) {
      const user = `user-${round}`;
      await put({ user }, { offers: true });
      const [id] = await Promise.all([register(user), put({ user }, { offers: false })]);
      expect(await isOff(id)).toBe(true);
    }
  });

  test("leaves nothing when it is erased, nor when its project is deleted", async () => {
    await put({ user: "ann" }, { offers: false });
    await put({ user: "bob" }, { offers: false });
    await registry.ask(userRequests.erase, { projectId, userId: "ann" });
    const rows = registry.db.collection("userPreferences");
    expect((await rows.find({ projectId }).toArray()).map(({ userId }) => userId)).toEqual(["bob"]);
    expect(await isOff(await register("ann"))).toBe(false);
    await registry.ask(projectRequests.delete, { projectId });
    await eventually(async () => expect(await rows.countDocuments({ projectId })).toBe(0));
  });

  test("is proven by a token of the project, and not by another one", async () => {
    const made = await registry.ask(identityKeyRequests.create, { projectId, keyId: newIdentityKeyId(new Date()) });
    const sign = (aud: string, secret = made.secret ?? "") => {
      const iat = Math.floor((Date.now() + ahead) / 1_000);
      const part = (value: unknown) => Buffer.from(JSON.stringify(value)).toString("base64url");
      const text = `${part({ alg: "HS256" })}.${part({ sub: "ann", aud, iat, exp: iat + 600 })}`;
      return `${text}.${createHmac("sha256", secret).update(text).digest("base64url")}`;
    };
    const ask = (userToken: string) => registry.ask(userRequests.authenticate, { projectId, userToken });
    expect(await ask(sign(projectId))).toEqual({ userId: "ann" });
    for (const wrong of [sign(await registry.project()), sign(projectId, "guessed")])
      expect(await failure(ask(wrong))).toMatchObject({ code: "user-token-invalid" });
    await registry.ask(deviceRequests.identify, {
      projectId,
      platform: "ios",
      token: apnsToken("x"),
      userToken: sign(projectId),
    });
    await registry.ask(userRequests.erase, { projectId, userId: "ann" });
    expect(await failure(ask(sign(projectId)))).toMatchObject({ code: "user-token-invalid" });
  });
});

test("what waited is muted if its kind was switched off meanwhile", async () => {
  const [off, on] = [await register(), await register()];
  await put({ device: off }, { offers: false });
  const devices = [{ id: off }, { id: on }];
  expect(await registry.ask(audienceRequests.check, { projectId, devices })).toEqual({ moved: [] });
  const kind = { name: "offers", on: true };
  expect(await registry.ask(audienceRequests.check, { projectId, devices, kind })).toEqual({ moved: [], muted: [off] });
});
