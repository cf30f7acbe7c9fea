import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { NotificationOpenedV1 } from "@herald/contracts";
import { eventually, natsRefusal, readPublished, request } from "@herald/testing";
import { afterAll, beforeAll, describe, expect } from "vitest";
import type { Project } from "./harness/project.ts";
import { test } from "./harness/shared-system.ts";
import { deviceOf, payloadOf } from "./harness/simulators.ts";
import { logOnFailure, type System } from "./harness/system.ts";

let system: System;
let project: Project;
test.beforeAll(async ({ system: shared }) => {
  system = shared;
  project = await system.project();
});
logOnFailure(() => system);

const client = (route: string, body: unknown) => request(`${system.gateway}/api/v1`, route, { body });

/** The received pushes of a notification. */
const arrived = async (notificationId: string) =>
  (await system.simulators.pushes()).filter((push) => payloadOf(push).notification_id === notificationId);

describe("opens", () => {
  let consumer: ChildProcess;
  let printed = "";
  beforeAll(async () => {
    const { user, password, stream, durable, inboxPrefix } = system.analytics;
    consumer = spawn(process.execPath, [join(import.meta.dirname, "../examples/consumer.ts")], {
      env: {
        NATS_URL: system.broker.url,
        NATS_USER: user,
        NATS_PASSWORD: password,
        NATS_STREAM: stream,
        NATS_DURABLE: durable,
        NATS_INBOX_PREFIX: inboxPrefix,
      },
      stdio: ["ignore", "pipe", "pipe"],
    });
    consumer.stderr?.on("data", (text) => system.logs.add("example", String(text)));
    consumer.stdout?.setEncoding("utf8").on("data", (text) => {
      printed += text;
    });
  });
  afterAll(() => consumer.kill("SIGKILL"));
  const opens = () =>
    printed
      .split("\n")
      .filter(Boolean)
      .map((line) => JSON.parse(line) as { data: Record<string, string> })
      .map(({ data, ...event }): Record<string, string> => ({ ...event, ...data }));

  test("an open is recorded, counted once, and published to a consumer that has only the analytics credential", async () => {
    const { device: first } = await project.register();
    const { device: second } = await project.register();
    const { id } = await project.send({ title: "Open me", targets: [first.id, second.id] });
    await project.final(id);
    const push = (await arrived(id)).find((one) => deviceOf(one) === first.id);
    if (!push) throw new Error("it did not arrive");
    const body = { project_id: project.id, token: payloadOf(push).token };
    const open = () => client(`PUT /notifications/${id}/open`, body);
    expect((await open()).status).toBe(204);
    expect((await open()).status).toBe(204);

    await eventually(async () => {
      expect((await project.notification(id)).counts).toMatchObject({ devices: 2, accepted: 2, opened: 1 });
    });
    const web = await project.call(`GET /stats?notification=${id}&platform=web`);
    expect(web.body.data.totals).toMatchObject({ sent: 0, opened: 0, open_rate: null });
    await eventually(async () => {
      const ios = await project.call(`GET /stats?notification=${id}&platform=ios`);
      expect(ios.body.data.totals).toMatchObject({ sent: 2, opened: 1, open_rate: 0.5 });
      expect((await project.notification(id)).opens).toMatchObject({
        open_rate: 0.5,
        first_opened_at: expect.any(String),
        time_to_open: { p50: expect.any(Number) },
      });
    });
    const match = encodeURIComponent("condition:last_opened_at > '-1h'");
    await eventually(async () => {
      const devices: { id: string }[] = (await project.call(`GET /devices?match=${match}`)).body.data;
      expect([first, second].map((one) => devices.some((found) => found.id === one.id))).toEqual([true, false]);
    });
    const rows = await project.deliveries(id);
    const opened = rows.map(({ device_id, opened_at }) => [device_id, opened_at !== undefined]);
    expect(Object.fromEntries(opened)).toEqual({ [first.id]: true, [second.id]: false });

    const events = await eventually(async () => {
      const found = await readPublished(system.broker, NotificationOpenedV1.filter);
      const mine = found.filter((event) => event.body.includes(id));
      expect(mine).toHaveLength(1);
      return mine;
    });
    const [event] = events;
    expect(event?.headers).toMatchObject({
      "ce-specversion": "1.0",
      "ce-type": "io.herald.notification.opened.v1",
      "ce-source": `/projects/${project.id}`,
      traceparent: expect.stringMatching(/^00-[0-9a-f]{32}-[0-9a-f]{16}-0[01]$/),
    });
    const told = await eventually(() => {
      const mine = opens().filter((one) => one.notification_id === id);
      expect(mine).toHaveLength(1);
      return mine[0];
    });
    expect(told).toMatchObject({
      id: event?.headers["ce-id"],
      type: "io.herald.notification.opened.v1",
      project_id: project.id,
      device_id: first.id,
      at: rows.find(({ device_id }) => device_id === first.id)?.opened_at,
    });
  });

  test.for<[what: string, forge: (token: string) => { token?: string; project_id?: string; id?: string }]>([
    ["a forged signature", (token) => ({ token: `${token.slice(0, -4)}AAAA` })],
    ["another device", (token) => ({ token: token.replace(/dev_.{26}/, "dev_01m7yrszajfsprzbd1z1br2ywr") })],
    ["another notification", () => ({ id: "ntf_01m7yrszajfsprzbd1z1br2ywr" })],
    ["another project", () => ({ project_id: "prj_01m7yrszajfsprzbd1z1br2ywr" })],
    ["no token at all", () => ({ token: "hello" })],
  ])("an open with %s is refused", async ([, forge]) => {
    const { device } = await project.register();
    const { id } = await project.send({ title: "Open me", targets: [device.id] });
    await project.final(id);
    const [push] = await arrived(id);
    if (!push) throw new Error("it did not arrive");
    const { id: where = id, ...change } = forge(payloadOf(push).token);
    const body = { project_id: project.id, token: payloadOf(push).token, ...change };
    expect((await client(`PUT /notifications/${where}/open`, body)).status).toBe(403);
    expect((await client(`PUT /notifications/${id}/open`, { ...body, token: payloadOf(push).token })).status).toBe(
      change.project_id ? 403 : 204,
    );
  });

  test("the example's consumer stops cleanly", async () => {
    consumer.kill("SIGTERM");
    expect(await once(consumer, "exit")).toEqual([0, null]);
  });
});

describe("the analytics credential", () => {
  const refusal = (line: string) => natsRefusal({ ...system.analytics, url: system.broker.url }, line);
  const subscribe = (subject: string) => refusal(`SUB ${subject} 1`);
  const publish = (subject: string) => refusal(`PUB ${subject} _INBOX_analytics.1 0\r\n`);

  test("reads its durable", async () => {
    const { stream, durable, inboxPrefix } = system.analytics;
    expect(await subscribe(`${inboxPrefix}.1`)).toBeUndefined();
    expect(await publish(`$JS.API.CONSUMER.INFO.${stream}.${durable}`)).toBeUndefined();
    expect(await publish(`$JS.API.CONSUMER.MSG.NEXT.${stream}.${durable}`)).toBeUndefined();
  });

  test.for([">", "push.>", "push.evt.>", "push.req.>", "$JS.>", "$KV.>", "$SYS.>", "_INBOX.>"])(
    "may not subscribe to %s",
    async (subject) => {
      expect(await subscribe(subject)).toMatch(/^permissions violation/i);
    },
  );

  test.for([
    "push.cmd.v1.dispatch.send.prj_1.ntf_1",
    "push.evt.v1.prj_1.notification.opened",
    "push.deliver.v1.direct.ios.prj_1",
    "push.req.v1.registry.projects.list",
    "push.dlq.v1.dispatch-start",
    "$KV.push_tokens.1",
    "$JS.API.INFO",
    "$JS.API.STREAM.INFO.PUSH_EVENTS",
    "$JS.API.STREAM.NAMES",
    "$JS.API.STREAM.CREATE.MINE",
    "$JS.API.STREAM.UPDATE.PUSH_EVENTS",
    "$JS.API.STREAM.PURGE.PUSH_EVENTS",
    "$JS.API.STREAM.DELETE.PUSH_EVENTS",
    "$JS.API.STREAM.MSG.GET.PUSH_EVENTS",
    "$JS.API.STREAM.MSG.DELETE.PUSH_EVENTS",
    "$JS.API.DIRECT.GET.PUSH_EVENTS",
    "$JS.API.DIRECT.GET.KV_push_tokens.$KV.push_tokens.1",
    "$JS.API.CONSUMER.CREATE.PUSH_EVENTS.mine",
    "$JS.API.CONSUMER.CREATE.PUSH_EVENTS.consumers-opens",
    "$JS.API.CONSUMER.DURABLE.CREATE.PUSH_EVENTS.consumers-opens",
    "$JS.API.CONSUMER.DELETE.PUSH_EVENTS.consumers-opens",
    "$JS.API.CONSUMER.PAUSE.PUSH_EVENTS.consumers-opens",
    "$JS.API.CONSUMER.INFO.PUSH_EVENTS.registry-retire-device",
    "$JS.API.CONSUMER.MSG.NEXT.PUSH_EVENTS.registry-retire-device",
    "$JS.API.CONSUMER.MSG.NEXT.PUSH_CMD.dispatch-start",
    "$JS.ACK.PUSH_CMD.dispatch-start.1.1.1.1.1",
    "$JS.ACK.PUSH_EVENTS.registry-retire-device.1.1.1.1.1",
    "$SYS.REQ.SERVER.PING",
  ])("may not publish to %s", async (subject) => {
    expect(await publish(subject)).toMatch(/^permissions violation/i);
  });

  test("has a password", async () => {
    const guess = { ...system.analytics, url: system.broker.url, password: "guess" };
    expect(await natsRefusal(guess, "SUB _INBOX_analytics.1 1")).toMatch(/^authorization violation/i);
  });
});
