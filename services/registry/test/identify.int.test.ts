import { deviceRequests, type ProjectId, secretHash } from "@herald/contracts";
import { describe, expect, test } from "vitest";
import { apnsToken, failure, useRegistry } from "./registry-fixture.ts";

let projectId: ProjectId;
const registry = useRegistry({
  eachProject: (id) => {
    projectId = id;
  },
});

const stored = (id: string) => registry.db.collection<{ _id: string }>("devices").findOne({ _id: id });
const token = apnsToken("one");

describe("identification by a client", () => {
  const identify = (token: string, rest: object = {}) =>
    registry.ask(deviceRequests.identify, { projectId, platform: "ios", token, ...rest });

  test("of a new device answers a credential, of a known one none, and keeps the one it has", async () => {
    const first = await identify(token, { metadata: { a: 1 } });
    expect(first).toMatchObject({
      created: true,
      device: { status: "active" },
      credential: expect.stringMatching(/^hdc_/),
    });
    const second = await identify(token, { metadata: { b: 2 } });
    expect(second).toEqual({ created: false, device: first.device });
    expect(await stored(first.device.id)).toMatchObject({
      metadata: { a: 1, b: 2 },
      credentialHash: secretHash(first.credential ?? ""),
    });
  });

  test("with the token before and the device's credential rotates it and keeps the device; again, it is the same", async () => {
    const { device } = await registry.register(projectId, token, { topics: ["news"] });
    const next = apnsToken("next");
    for (const _ of [1, 2]) {
      expect(await identify(next, { previousToken: token, provenDevice: device.id })).toEqual({
        created: false,
        device: { id: device.id, status: "active" },
      });
    }
    expect(await registry.ask(deviceRequests.get, { projectId, deviceId: device.id })).toMatchObject({
      token: next,
      topics: ["news"],
    });
    expect((await identify(token)).created).toBe(true);
  });

  test("with an FCM token before, the device's credential and its Firebase Installation ID keeps the device", async () => {
    const android = { platform: "android" };
    const { device, credential } = await identify("fcm-token:1", { ...android, metadata: { plan: "pro" } });
    expect(credential).toBeDefined();
    const fid = { ...android, tokenKind: "fid", previousToken: "fcm-token:1", provenDevice: device.id };
    for (const _ of [1, 2]) {
      expect(await identify("cAbCdEfGhIjKlMnOpQrStU", fid)).toEqual({
        created: false,
        device: { id: device.id, status: "active" },
      });
    }
    expect(await registry.ask(deviceRequests.get, { projectId, deviceId: device.id })).toMatchObject({
      token: "cAbCdEfGhIjKlMnOpQrStU",
      token_kind: "fid",
      metadata: { plan: "pro" },
    });
    // Back to a registration token: what it is not named, it is not.
    const back = { ...android, tokenKind: "token", previousToken: "cAbCdEfGhIjKlMnOpQrStU", provenDevice: device.id };
    expect(await identify("fcm-token:2", back)).toMatchObject({ created: false, device: { id: device.id } });
    expect(await stored(device.id)).toMatchObject({ token: "fcm-token:2", tokenKind: "token" });
  });

  test("with the previous token and no proof is a new device, as if that token were unknown", async () => {
    const { device } = await registry.register(projectId, token, { topics: ["news"], userId: "ann" });
    const other = await registry.register(projectId, apnsToken("other"));
    for (const [at, proof] of [{}, { provenDevice: other.device.id }].entries()) {
      const { created, device: made } = await identify(apnsToken(`next ${at}`), { previousToken: token, ...proof });
      expect(created).toBe(true);
      expect(await registry.ask(deviceRequests.get, { projectId, deviceId: made.id })).toMatchObject({
        user_id: null,
        topics: [],
      });
    }
    expect(await identify(other.device.token, { previousToken: token })).toMatchObject({ created: false });
    expect(await registry.ask(deviceRequests.get, { projectId, deviceId: device.id })).toEqual(device);
  });

  test("with an unknown previous token is a new device", async () => {
    expect(await identify(token, { previousToken: apnsToken("gone") })).toMatchObject({ created: true });
  });

  test("onto a token that another device holds is refused, and changes neither", async () => {
    const one = await registry.register(projectId, token);
    const other = await registry.register(projectId, apnsToken("other"));
    expect(
      await failure(
        identify(other.device.token, { previousToken: token, provenDevice: one.device.id, metadata: { a: 1 } }),
      ),
    ).toEqual({
      code: "token-in-use",
      messages: ["identifier: another device holds this push token"],
    });
    for (const { device } of [one, other])
      expect(await registry.ask(deviceRequests.get, { projectId, deviceId: device.id })).toEqual(device);
  });

  test("of many devices that rotate onto one token, one gets it", async () => {
    const owners = await Promise.all(
      Array.from({ length: 10 }, (_, at) => registry.register(projectId, apnsToken(`owner ${at}`))),
    );
    const results = await Promise.allSettled(
      owners.map(({ device }) => identify(token, { previousToken: device.token, provenDevice: device.id })),
    );
    expect(results.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
    expect(await registry.db.collection("devices").countDocuments({ projectId, token })).toBe(1);
    expect(await registry.db.collection("devices").countDocuments({ projectId })).toBe(10);
  });
});
