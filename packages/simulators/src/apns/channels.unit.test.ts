import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { type ApnsClient, connectApns } from "../../test/apns-client.ts";
import { startSimulators } from "../start-simulators.ts";
import type { Phone, Simulators } from "../types.ts";

let simulators: Simulators;
let client: ApnsClient;

beforeAll(async () => {
  simulators = await startSimulators();
  client = await connectApns(simulators);
});
afterAll(async () => {
  client.close();
  await simulators.stop();
});

const app = "org.example.app";
const control = async (route: string, body?: unknown) => {
  const [method, path] = route.split(" ");
  const response = await fetch(`${simulators.control.url}${path}`, {
    method: method ?? "GET",
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  return { status: response.status, body: text === "" ? undefined : JSON.parse(text) };
};
beforeEach(async () => {
  simulators.clear();
  await control("DELETE /apns/channels");
});

const wanted = { "message-storage-policy": 1, "push-type": "LiveActivity" };
const manage = (method: string, what = "channels", id?: string, body: unknown = wanted) =>
  client.send({
    method,
    path: `/1/apps/${app}/${what}`,
    headers: { "apns-channel-id": id, "apns-push-type": undefined },
    payload: method === "POST" ? JSON.stringify(body) : "",
  });
const make = async () => String((await manage("POST")).headers["apns-channel-id"]);
const state = (n: number, timestamp: number, event = "update") => ({
  aps: { event, timestamp, "content-state": { n } },
});
const broadcast = (id: string, payload: unknown, headers: Record<string, string | undefined> = {}) =>
  client.send({
    path: `/4/broadcasts/apps/${app}`,
    headers: { "apns-channel-id": id, "apns-push-type": "liveactivity", "apns-priority": "5", ...headers },
    payload: typeof payload === "string" ? payload : JSON.stringify(payload),
  });
const reasonOf = ({ status, body }: { status: number; body: string }) => [status, JSON.parse(body).reason];

describe("channels", () => {
  it("are made, listed, read and deleted", async () => {
    const id = await make();
    expect(await manage("POST")).toMatchObject({ status: 201, body: "" });
    const { channels } = JSON.parse((await manage("GET", "all-channels")).body);
    expect(channels).toHaveLength(2);
    expect(channels).toContain(id);
    expect(JSON.parse((await manage("GET", "channels", id)).body)).toEqual(wanted);
    expect(await manage("DELETE", "channels", id)).toMatchObject({ status: 204 });
    expect(reasonOf(await manage("DELETE", "channels", id))).toEqual([400, "ChannelNotRegistered"]);
    expect(simulators.channels.list()).toHaveLength(1);
  });

  it("are at most 10,000 an app", async () => {
    expect((await control("POST /apns/channels", { app, count: 10_000 })).body.data).toHaveLength(10_000);
    expect(reasonOf(await manage("POST"))).toEqual([400, "CannotCreateChannelConfig"]);
  });

  it("refuse what Apple refuses", async () => {
    const id = await make();
    expect(reasonOf(await manage("POST", "channels", undefined, { "push-type": "alert" }))).toEqual([
      400,
      "InvalidPushType",
    ]);
    expect(reasonOf(await manage("DELETE"))).toEqual([400, "MissingChannelId"]);
    expect(reasonOf(await manage("DELETE", "channels", "no base64!"))).toEqual([400, "BadChannelId"]);
    expect(reasonOf(await manage("PUT"))).toEqual([405, "MethodNotAllowed"]);
    expect(reasonOf(await broadcast(id, state(1, 1), { "apns-push-type": "alert" }))).toEqual([400, "InvalidPushType"]);
    expect(reasonOf(await broadcast(id, state(1, 1), { "apns-push-type": undefined }))).toEqual([
      400,
      "MissingPushType",
    ]);
    const large = JSON.stringify({ aps: { fill: "x".repeat(5_120) } });
    expect(reasonOf(await broadcast(id, large))).toEqual([413, "PayloadTooLarge"]);
  });

  it("are performed at once, and a scripted answer is no answer to the sender alone", async () => {
    simulators.script([
      { tokenPrefix: "channels/", times: 1, hang: true },
      { tokenPrefix: "channels/", status: 503 },
    ]);
    const hanging = client.open({ path: `/1/apps/${app}/channels`, payload: JSON.stringify(wanted) });
    await expect.poll(() => simulators.channels.list().length).toBe(1);
    expect(await manage("POST")).toMatchObject({ status: 503 });
    expect(simulators.channels.list()).toHaveLength(1);
    hanging.close();
  });
});

describe("a broadcast", () => {
  const start = async (ios: string, channel: string) => {
    const type = "OrderAttributes";
    const { tokens } = (await control("POST /apns/phones", { app, ios, activities: [type] })).body as Phone;
    const token = tokens[`liveactivity/${type}`] ?? "";
    const aps = { event: "start", timestamp: 1, alert: { title: "A", body: "B" }, "attributes-type": type };
    await client.send({
      token,
      headers: { "apns-topic": `${app}.push-type.liveactivity`, "apns-push-type": "liveactivity" },
      payload: JSON.stringify({
        aps: { ...aps, attributes: {}, "content-state": { n: 1 }, "input-push-channel": channel },
      }),
    });
    return () =>
      simulators.instances.list(token)[0]?.shown.map(({ contentState }) => (contentState as { n: number }).n);
  };

  it("reaches the cards that follow its channel, in one request", async () => {
    const [id, other] = [await make(), await make()];
    const [first, second, stranger] = [await start("18.0", id), await start("26.0", id), await start("18.0", other)];
    expect(await broadcast(id, state(2, 2))).toMatchObject({ status: 200 });
    expect([first(), second(), stranger()]).toEqual([[1, 2], [1, 2], [1]]);
    expect(simulators.pushes().filter(({ token }) => token === `broadcasts/${app}`)).toHaveLength(1);
  });

  it("reaches a card that subscribes later, and none before iOS 18", async () => {
    const id = await make();
    await broadcast(id, state(7, 7));
    expect((await start("18.0", id))()).toEqual([1, 7]);
    expect((await start("17.4", id))()).toBeUndefined();
    const body = { app, attributesType: "OrderAttributes", channel: id, count: 3 };
    expect((await control("POST /apns/instances", body)).status).toBe(201);
    const followers = simulators.instances.list().filter(({ channel, startToken }) => channel === id && !startToken);
    expect(followers.map(({ shown }) => shown.at(-1)?.contentState)).toEqual([{ n: 7 }, { n: 7 }, { n: 7 }]);
  });
});
