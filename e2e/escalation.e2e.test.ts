import { Herald } from "@herald/client";
import { NotificationUnopenedV1 } from "@herald/contracts";
import { eventually, expectStatus, readPublished, request } from "@herald/testing";
import { afterAll, beforeAll, expect } from "vitest";
import type { Project } from "./harness/project.ts";
import { test } from "./harness/shared-system.ts";
import { payloadOf } from "./harness/simulators.ts";
import { logOnFailure, type System } from "./harness/system.ts";
import { startWebhookReceiver, type WebhookReceiver } from "./harness/webhook-receiver.ts";

let system: System;
let project: Project;
let receiver: WebhookReceiver;
test.beforeAll(async ({ system: shared }) => {
  system = shared;
  project = await system.project("Escalated");
});
beforeAll(async () => {
  receiver = await startWebhookReceiver(() => 204);
});
afterAll(() => receiver.stop());
logOnFailure(() => system);

const type = "io.herald.notification.unopened.v1" as const;
/** Its shortest time, and more than a minute until Herald looks again. */
const eventsWithinMs = 150_000;

const open = async (id: string, token: string) => {
  const push = (await system.simulators.pushes({ token })).find((one) => payloadOf(one).notification_id === id);
  if (!push) throw new Error("it has not arrived");
  const body = { project_id: project.id, token: payloadOf(push).token };
  expectStatus(await request(`${system.gateway}/api/v1`, `PUT /notifications/${id}/open`, { body }), 204);
};

test("who did not open a notification in time is in one event by NATS, webhook and stream, with the reason", {
  timeout: 240_000,
}, async () => {
  const since = new Date();
  const path = `/${project.id}`;
  const webhook = { webhook: { url: receiver.urlOf(path), events: [type] } };
  receiver.expectSecret(path, expectStatus(await project.call("POST /webhooks", { body: webhook }), 201).body.secret);
  await project.register({ user_id: "ann" });
  const [phone, tablet] = [await project.register({ user_id: "bob" }), await project.register({ user_id: "bob" })];
  const { device: lone } = await project.register();
  const targets = ["user:ann", "user:bob", "user:cem", `device:${lone.id}`, `token:${phone.device.token}`] as const;
  const content = { title: "Your table is ready", targets: [...targets], kind: "tables", escalate_after: 60 };
  const { id } = await project.send(content);
  expect(await project.final(id)).toMatchObject({ escalate_after: 60 });
  await open(id, tablet.device.token);

  const { events } = new Herald({ url: system.gateway, token: project.token });
  const streamed: unknown[] = [];
  for await (const { data } of events.follow({ types: [type], since, signal: AbortSignal.timeout(eventsWithinMs) }))
    if (streamed.push(data) === 3) break;
  const facts = { project_id: project.id, notification_id: id, kind: "tables", at: expect.any(String) };
  const expected = [
    { ...facts, user_id: "ann", reason: "unopened" },
    { ...facts, user_id: "cem", reason: "no-active-device" },
    { ...facts, device_id: lone.id, reason: "unopened" },
  ];
  expect(streamed).toHaveLength(3);
  expect(streamed).toEqual(expect.arrayContaining(expected));
  const subject = NotificationUnopenedV1.filter.replace("*", project.id);
  expect((await readPublished(system.broker, subject)).map(({ body }) => JSON.parse(body))).toEqual(streamed);
  await eventually(() => expect(receiver.on(path).map(({ event }) => event.data)).toHaveLength(3));
  expect(receiver.on(path).map(({ event, genuine }) => ({ data: event.data, genuine }))).toEqual(
    expect.arrayContaining(expected.map((data) => ({ data, genuine: true }))),
  );
});
