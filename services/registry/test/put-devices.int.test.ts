import { deviceRequests, type ProjectId, secretHash } from "@herald/contracts";
import { eventually, readPublished } from "@herald/testing";
import { describe, expect, test } from "vitest";
import { apnsToken, failure, useRegistry } from "./registry-fixture.ts";
import { seedDevices } from "./seed-devices.ts";

let projectId: ProjectId;
const registry = useRegistry({
  eachProject: (id) => {
    projectId = id;
  },
  environment: { HERALD_REGISTRY_QUOTA_DEVICES: "110" },
});

const stored = () =>
  registry.db.collection<{ _id: string; token: string; version: number; credentialHash: string }>("devices");
const device = (seed: string | number, rest: object = {}) => ({
  platform: "ios",
  token: apnsToken(`${projectId} ${seed}`),
  ...rest,
});
const put = async (...devices: unknown[]) => (await registry.ask(deviceRequests.put, { projectId, devices })).results;
const idOf = (result: Awaited<ReturnType<typeof put>>[number] | undefined) => {
  if (result === undefined || !("id" in result)) throw new Error(`refused: ${JSON.stringify(result)}`);
  return result.id;
};
const read = async (result: Parameters<typeof idOf>[0]) =>
  registry.ask(deviceRequests.get, { projectId, deviceId: idOf(result) });

describe("devices that the project's backend puts", () => {
  test("keep a copy of their time zone and locale; a bad one refuses its device alone", async () => {
    const identifiers = { timezone: "Asia/Tokyo", current_locale: "ja_JP" };
    const [good, bad] = await put(
      device("zone", { identifiers }),
      device("bad", { identifiers: { time_zone: "Mars" } }),
    );
    expect(await read(good)).toMatchObject({
      identifiers: { current_time_zone: "Asia/Tokyo", current_locale: "ja-JP" },
    });
    expect(await stored().findOne({ _id: idOf(good) })).toMatchObject({ timeZone: "Asia/Tokyo", locale: "ja-JP" });
    expect(bad).toMatchObject({
      result: "refused",
      problems: [{ field: "identifiers.time_zone", detail: "must be an IANA time zone such as Europe/Berlin" }],
    });
    await put(device("zone", { identifiers: { current_time_zone: null } }));
    expect(await stored().findOne({ _id: idOf(good) })).not.toHaveProperty("timeZone");
  });

  test("are created, found unchanged, and updated, each in its place; without a credential and with events", async () => {
    const full = device("full", {
      metadata: { plan: "pro" },
      identifiers: { app_version: "2.1" },
      topics: ["news", "offers"],
      user_id: "ann",
      environment: "sandbox",
      last_seen_at: "2026-03-01T00:00:00Z",
    });
    const first = await put(full, device(2), device(3, { topics: ["news"] }));
    expect(first.map(({ result }) => result)).toEqual(["created", "created", "created"]);
    expect(await read(first[0])).toMatchObject({
      metadata: { plan: "pro" },
      topics: ["news", "offers"],
      user_id: "ann",
      environment: "sandbox",
      last_seen_at: "2026-03-01T00:00:00.000Z",
    });
    expect(await read(first[1])).not.toHaveProperty("last_seen_at");
    expect(await stored().distinct("credentialHash", { projectId })).toEqual([""]);

    const again = await put(full, device(2), device(3, { topics: ["news"] }));
    expect(again).toEqual(first.map((one) => ({ ...one, result: "unchanged" })));
    const changed = await put(device(2, { metadata: { a: 1 } }), full, device(4));
    expect(changed.map(({ result }) => result)).toEqual(["updated", "unchanged", "created"]);
    expect(changed.slice(0, 2).map(idOf)).toEqual([idOf(first[1]), idOf(first[0])]);
    await eventually(async () => {
      const events = async (type: string) =>
        (await readPublished(registry.broker, `push.evt.v1.${projectId}.${type}`)).length;
      expect(await events("device.registered")).toBe(4);
      expect(await events("device.updated")).toBe(1);
      expect(await events("device.subscribed")).toBe(3);
      expect(await events("topic.created")).toBe(2);
    });
  });

  test("of the same token are one device, and the later entry counts", async () => {
    const results = await put(
      device(1, { metadata: { a: 1, b: 1 } }),
      device(2),
      device(1, { metadata: { a: 2 } }),
      device(1, { metadata: { a: 2 } }),
    );
    expect(results.map(({ result }) => result)).toEqual(["created", "created", "updated", "unchanged"]);
    expect(new Set(results.map(idOf)).size).toBe(2);
    expect((await read(results[0])).metadata).toEqual({ a: 2, b: 1 });
  });

  test("that are not devices are refused with every problem, and stop no other", async () => {
    const results = await put(
      { platform: "ios", token: "no", surplus: 1 },
      device(1),
      null,
      "text",
      device(2, { metadata: { a: "x".repeat(20_000) } }),
      { platform: "web", token: "https://push.example/1" },
      device(3, { topics: ["all"] }),
      device(4, { user_id: "a/b" }),
    );
    expect(results.map(({ result }) => result)).toEqual([
      "refused",
      "created",
      "refused",
      "refused",
      "refused",
      "refused",
      "refused",
      "refused",
    ]);
    expect(results[0]).toMatchObject({
      problems: expect.arrayContaining([{ field: "surplus", detail: expect.any(String), code: "unknown-field" }]),
    });
    expect(results[5]).toMatchObject({ problems: [{ field: "keys", detail: expect.stringContaining("required") }] });
    expect(await stored().countDocuments({ projectId })).toBe(1);
  });

  test("keep their status: a put activates nothing, and `inactive` counts for a new device alone", async () => {
    const [gone] = await put(device(1, { status: "inactive" }));
    expect((await read(gone)).status).toBe("inactive");
    expect(await put(device(1, { status: "active" }))).toEqual([{ result: "unchanged", id: idOf(gone) }]);
    expect((await read(gone)).status).toBe("inactive");
    const { device: known } = await registry.register(projectId, apnsToken(`${projectId} 2`));
    expect(await put(device(2, { status: "inactive" }))).toEqual([{ result: "unchanged", id: known.id }]);
    expect((await read({ result: "unchanged", id: known.id })).status).toBe("active");
  });

  test("keep the credential that they have; one without gets none by its push token, but by its backend", async () => {
    const { device: known, credential = "" } = await registry.register(projectId, apnsToken(`${projectId} 1`));
    await put(device(1, { metadata: { a: 1 } }));
    const valid = (deviceId: typeof known.id, secret: string) =>
      registry.ask(deviceRequests.authenticate, { projectId, deviceId, credentialHash: secretHash(secret) });
    expect(await valid(known.id, credential)).toEqual({ valid: true });

    const [created] = await put(device(2, { user_id: "ann" }));
    expect(await valid(idOf(created), "")).toEqual({ valid: false });
    expect(
      await registry.ask(deviceRequests.authenticate, { projectId, deviceId: idOf(created), credentialHash: "" }),
    ).toEqual({
      valid: false,
    });
    const identify = () =>
      registry.ask(deviceRequests.identify, { projectId, platform: "ios", token: apnsToken(`${projectId} 2`) });
    expect(await identify()).toEqual({ created: false, device: { id: idOf(created), status: "active" } });
    const first = await registry.register(projectId, apnsToken(`${projectId} 2`));
    expect(await valid(idOf(created), first.credential)).toEqual({ valid: true });
    expect(await identify()).not.toHaveProperty("credential");
    expect((await read(created)).user_id).toBe("ann");
  });

  test("set and clear their user, who stays where none is named", async () => {
    const [one] = await put(device(1, { user_id: "ann" }));
    await put(device(1));
    expect((await read(one)).user_id).toBe("ann");
    await put(device(1, { user_id: null }));
    expect((await read(one)).user_id).toBeNull();
  });

  test("of web name a key of the project, where it has any", async () => {
    const keys = { p256dh: `B${"p".repeat(86)}`, auth: "a".repeat(22) };
    const web = (rest: object) => ({ platform: "web", token: "https://push.example/1", keys, ...rest });
    expect((await put(web({ vapid_key_id: "0123456789abcdef" })))[0]?.result).toBe("created");
  });

  test("of another provider than the platform's own are devices of their own", async () => {
    const token = apnsToken(`${projectId} both`);
    const both = [
      { platform: "ios", token },
      { platform: "ios", provider: "fcm", token, installation_id: "one" },
    ];
    const first = await put(...both);
    expect(first.map(({ result }) => result)).toEqual(["created", "created"]);
    expect(await read(first[1])).toMatchObject({ provider: "fcm", installation_id: "one" });
    expect((await put(...both)).map(({ result }) => result)).toEqual(["unchanged", "unchanged"]);
  });

  test("beyond the quota are refused, each alone", async () => {
    const seeds = Array.from({ length: 110 }, (_, at) => ({
      token: apnsToken(`${projectId} ${at}`),
      platform: "ios" as const,
    }));
    for await (const _ of seedDevices(registry.db, projectId, seeds));
    const [known, fresh, other] = await put(device(0), device("fresh"), device(109));
    expect([known?.result, other?.result]).toEqual(["unchanged", "unchanged"]);
    expect(fresh).toMatchObject({ result: "refused", problems: [{ code: "device-quota-exceeded" }] });
    expect(await stored().countDocuments({ projectId })).toBe(110);
  });

  test("of a project that does not exist are an error of the request", async () => {
    const { code } = await failure(
      registry.ask(deviceRequests.put, { projectId: "prj_06bq4ghm31tz5d2ns8y7k9w0ac", devices: [device(1)] }),
    );
    expect(code).toBe("project-not-found");
  });
});
