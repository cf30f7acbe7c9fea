import { createHmac } from "node:crypto";
import { sendRequest } from "@herald/bus";
import {
  audienceRequests,
  deviceRequests,
  identityKeyRequests,
  newIdentityKeyId,
  type ProjectId,
  UserErasedV1,
  userKey,
  userRequests,
} from "@herald/contracts";
import { eventually } from "@herald/testing";
import { beforeEach, describe, expect, test } from "vitest";
import { apnsToken, failure, useRegistry } from "./registry-fixture.ts";
import { seedDevices } from "./seed-devices.ts";

const registry = useRegistry();
let projectId: ProjectId;
let secret: string;
beforeEach(async () => {
  projectId = await registry.project();
  const made = await registry.ask(identityKeyRequests.create, { projectId, keyId: newIdentityKeyId(new Date()) });
  secret = made.secret ?? "";
});

const seconds = () => Math.floor(Date.now() / 1_000);
const userToken = (sub: string, iat = seconds()) => {
  const part = (value: unknown) => Buffer.from(JSON.stringify(value)).toString("base64url");
  const text = `${part({ alg: "HS256" })}.${part({ sub, aud: projectId, iat, exp: iat + 600 })}`;
  return `${text}.${createHmac("sha256", secret).update(text).digest("base64url")}`;
};
const identify = (seed: string, rest: object = {}) =>
  registry.ask(deviceRequests.identify, { projectId, platform: "ios", token: apnsToken(seed), ...rest });
const reached = async (userId: string) =>
  (await registry.ask(audienceRequests.count, { projectId, targets: [`user:${userId}`] })).devices.ios;

describe("an unproven client", () => {
  test("gets no credential for an imported device by a claim of its own, but its user does, once", async () => {
    const devices = ["own", "claimed"].map((seed) => ({ platform: "ios", token: apnsToken(seed), user_id: "ann" }));
    await registry.ask(deviceRequests.put, { projectId, devices });
    expect(await identify("own")).not.toHaveProperty("credential");
    expect(await identify("own", { userToken: userToken("ann") })).toHaveProperty("credential");
    expect(await identify("own", { userToken: userToken("ann") })).not.toHaveProperty("credential");

    for (const age of [30, 20, 10])
      expect(await identify("claimed", { userToken: userToken("bob", seconds() - age) })).not.toHaveProperty(
        "credential",
      );
    // The backend confirms the user.
    await registry.ask(deviceRequests.put, { projectId, devices: [{ ...devices[1], user_id: "bob" }] });
    expect(await identify("claimed", { userToken: userToken("bob") })).toHaveProperty("credential");
  });

  test("rotates no device that it claimed; the device's credential makes the user's tokens proof again", async () => {
    const known = await identify("known");
    const claim = userToken("bob", seconds() - 30);
    expect((await identify("known", { userToken: claim })).device.id).toBe(known.device.id);
    const rotated = await identify("rotated", { previousToken: apnsToken("known"), userToken: claim });
    expect(rotated.device.id).not.toBe(known.device.id);
    const login = { userToken: userToken("bob"), provenDevice: known.device.id };
    await identify("known", login);
    const moved = await identify("moved", { previousToken: apnsToken("known"), userToken: userToken("bob") });
    expect(moved.device.id).toBe(known.device.id);
  });
});

describe("a user", () => {
  test("is set on devices that proved it, and secrets are stored encrypted", async () => {
    await identify("one", { userToken: userToken("ann") });
    await registry.register(projectId, apnsToken("two"), { userId: "ann" });
    await identify("claim", { metadata: { user_id: "ann" } });
    expect(await registry.ask(userRequests.get, { projectId, userId: "ann" })).toMatchObject({ device_count: 2 });
    expect(await reached("ann")).toBe(2);
    const stored = JSON.stringify(await registry.db.collection("projects").find().toArray());
    expect(stored).not.toContain(secret);
  });

  test("of concurrent changes is one of the requested states", async () => {
    const { device } = await identify("one");
    const at = seconds();
    const second = registry.newApp();
    await second.start();
    const all = Array.from({ length: 24 }, (_, n) =>
      registry
        .ask(deviceRequests.change, {
          projectId,
          deviceId: device.id,
          change: n % 3 === 2 ? { user_id: null } : { user_token: userToken(`user-${n}`, at - 24 + n) },
        })
        .then(({ user_id }) => user_id)
        .catch((error: { code: string }) => error.code),
    );
    const answers = await Promise.all(all);
    for (const answer of answers) expect(answer ?? "user-").toMatch(/^user-/);
    const final = await registry.db
      .collection<{ projectId: string; userId?: string; facets: string[] }>("devices")
      .findOne({ projectId });
    expect(final?.facets).toEqual([...(final?.userId === undefined ? [] : [`u:${final.userId}`]), "z:none"]);
    await second.stop();
  });
});

describe("the list of users", () => {
  const list = (after = "", perPage = 2) => registry.ask(userRequests.list, { projectId, page: { after, perPage } });

  test("has each user who has devices once, by id, page after page", async () => {
    for (const [seed, userId] of [
      ["a", "cid"],
      ["b", "ann"],
      ["c", "bob"],
      ["d", "ann"],
    ] as const)
      await registry.register(projectId, apnsToken(seed), { userId });
    await identify("unknown");
    const first = await list();
    expect(first.data).toMatchObject([
      { user_id: "ann", device_count: 2 },
      { user_id: "bob", device_count: 1 },
    ]);
    const second = await list(first.next ?? "");
    expect(second).toMatchObject({ data: [{ user_id: "cid", device_count: 1 }], next: null });
    const { last_seen_at } = await registry.ask(userRequests.get, { projectId, userId: "ann" });
    expect(first.data[0]?.last_seen_at).toBe(last_seen_at);
  });

  test("contains only users whose id begins with a prefix, page by page", async () => {
    for (const [seed, userId] of ["u_1", "u_10", "u_11", "u_2", "U_1", "u_1~"].entries())
      await registry.register(projectId, apnsToken(String(seed)), { userId });
    const ask = (after: string) =>
      registry.ask(userRequests.list, { projectId, prefix: "u_1", page: { after, perPage: 3 } });
    const first = await ask("");
    expect(first.data.map(({ user_id }) => user_id)).toEqual(["u_1", "u_10", "u_11"]);
    expect(await ask(first.next ?? "")).toMatchObject({ data: [{ user_id: "u_1~" }], next: null });
  });

  test("leaves out who logged out, was erased, or belongs to another project", async () => {
    const { device } = await registry.register(projectId, apnsToken("out"), { userId: "out" });
    await registry.ask(deviceRequests.change, { projectId, deviceId: device.id, change: { user_id: null } });
    await registry.register(projectId, apnsToken("gone"), { userId: "gone" });
    await registry.ask(userRequests.erase, { projectId, userId: "gone" });
    await registry.register(await registry.project(), apnsToken("other"), { userId: "other" });
    expect(await list()).toEqual({ data: [], next: null });
  });

  test("counts at most 1,000 devices of a user, and reads no more than that for a page", async () => {
    const users = ["bot", ...Array.from({ length: 1_500 }, () => "crowd"), "dan", "eve"];
    const seeds = users.map((userId, at) => ({
      token: apnsToken(`crowd-${at}`),
      platform: "ios" as const,
      user: { by: "project", userId } as const,
    }));
    for await (const _ of seedDevices(registry.db, projectId, seeds));
    const pages: [string, number][][] = [];
    for (let after: string | null = ""; after !== null; ) {
      const page: Awaited<ReturnType<typeof list>> = await list(after, 100);
      pages.push(page.data.map(({ user_id, device_count }) => [user_id, device_count]));
      after = page.next;
    }
    expect(pages).toEqual([
      [["bot", 1]],
      [["crowd", 1_000]],
      [
        ["dan", 1],
        ["eve", 1],
      ],
    ]);
  });

  test("refuses an `after` that was not given out", async () => {
    expect(await failure(list("ann"))).toMatchObject({ code: "validation-failed" });
  });
});

describe("an erasure", () => {
  test("deletes the user's devices, publishes one event for each request, and succeeds for an unknown user", async () => {
    const mine = await identify("one", { userToken: userToken("ann") });
    const other = await registry.register(projectId, apnsToken("other"), { userId: "bob" });
    const { erasedAt } = await registry.ask(userRequests.erase, { projectId, userId: "ann" });
    const event = await eventually(async () => {
      const found = await registry.lastEvent(projectId, UserErasedV1);
      if (!found) throw new Error("no event yet");
      return found;
    });
    expect(event).toEqual({ project_id: projectId, user_id: "ann", at: erasedAt });
    expect(await failure(registry.ask(userRequests.get, { projectId, userId: "ann" }))).toMatchObject({
      code: "user-not-found",
    });
    expect(await reached("bob")).toBe(1);
    await registry.ask(userRequests.erase, { projectId, userId: "ann" });
    await registry.ask(userRequests.erase, { projectId, userId: "unknown" });
    await eventually(async () => {
      const rows = JSON.stringify(
        await Promise.all(
          (await registry.db.listCollections().toArray()).map(({ name }) =>
            registry.db.collection(name).find({ projectId }).toArray(),
          ),
        ),
      );
      expect(rows).not.toContain('"ann"');
      expect(rows).not.toContain("u:ann");
    });
    const stored = await registry.db.collection<{ _id: string }>("devices").findOne({ _id: mine.device.id });
    expect(stored === null || (stored as { deletedAt?: Date }).deletedAt !== undefined).toBe(true);
    expect(other.device.user_id).toBe("bob");
  });

  test("tells dispatch the devices before it deletes them, so a failure leaves them to the next erasure", async () => {
    const one = await registry.register(projectId, apnsToken("first"), { userId: "ann" });
    const two = await registry.register(projectId, apnsToken("second"), { userId: "ann" });
    registry.dispatch.fails = true;
    const failed = failure(registry.ask(userRequests.erase, { projectId, userId: "ann" }));
    expect(await failed).toMatchObject({ code: "database-unavailable" });
    expect(await reached("ann")).toBe(2);
    registry.dispatch.fails = false;
    const { erasedAt: at } = await registry.ask(userRequests.erase, { projectId, userId: "ann" });
    expect(await reached("ann")).toBe(0);
    const devices = [
      { id: one.device.id, token: apnsToken("first") },
      { id: two.device.id, token: apnsToken("second") },
    ].sort((first, second) => (first.id < second.id ? -1 : 1));
    expect(registry.dispatch.erased.filter((erased) => erased.projectId === projectId)).toEqual([
      { projectId, key: userKey(projectId, "ann"), at, devices },
    ]);
  });

  test("rejects tokens from before it in every request, and accepts later ones", async () => {
    const old = userToken("ann");
    const { device } = await identify("one");
    const { device: stranger } = await registry.register(projectId, apnsToken("stranger"), { userId: "bob" });
    await registry.ask(userRequests.erase, { projectId, userId: "ann" });
    const soon = userToken("ann", seconds() + 30);
    const attempts = [
      () => identify("new", { userToken: old }),
      () => registry.ask(deviceRequests.change, { projectId, deviceId: device.id, change: { user_token: old } }),
      () => identify("soon", { userToken: soon }),
      () => identify("stranger", { userToken: old }),
    ];
    for (const attempt of attempts) expect(await failure(attempt())).toMatchObject({ code: "user-token-invalid" });
    expect(await reached("ann")).toBe(0);
    // The push token of a device does not let an erased account remove it.
    for (const { id } of [device, stranger])
      expect(await registry.ask(deviceRequests.get, { projectId, deviceId: id })).toMatchObject({ id });
    expect(await reached("bob")).toBe(1);
    // As if the erasure had been two minutes ago.
    const past = new Date(Date.now() - 120_000);
    await registry.db.collection("erasures").updateMany({ projectId }, { $set: { at: past } });
    await identify("back", { userToken: userToken("ann") });
    expect(await reached("ann")).toBe(1);
  });
});

test("a waiting delivery may go to devices that exist, are active and belong to the same user", async () => {
  const one = await registry.register(projectId, apnsToken("one"), { userId: "ann" });
  const two = await registry.register(projectId, apnsToken("two"), { userId: "ann" });
  const three = await registry.register(projectId, apnsToken("three"));
  const gone = await registry.register(projectId, apnsToken("gone"));
  await registry.ask(deviceRequests.delete, { projectId, deviceId: gone.device.id });
  const change = { status: "inactive" as const };
  await registry.ask(deviceRequests.change, { projectId, deviceId: three.device.id, change });
  const check = (devices: { id: typeof one.device.id; userId?: string }[]) =>
    sendRequest(registry.bus, audienceRequests.check, { projectId, devices });
  const { id } = one.device;
  expect(await check([{ id }, { id: two.device.id, userId: "ann" }])).toEqual({ moved: [] });
  expect(
    await check([{ id, userId: "bob" }, { id: three.device.id }, { id: gone.device.id }, { id, userId: "." }]),
  ).toEqual({
    moved: [id, three.device.id, gone.device.id, id],
  });
});
