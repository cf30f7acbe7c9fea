import { Herald } from "@herald/client";
import { Scope } from "@herald/contracts";
import { eventually, expectStatus } from "@herald/testing";
import { describe, expect } from "vitest";
import type { Content, Project } from "./harness/project.ts";
import { test } from "./harness/shared-system.ts";
import { payloadOf } from "./harness/simulators.ts";
import { logOnFailure, type System } from "./harness/system.ts";

let system: System;
let project: Project;
let herald: Herald;
test.beforeAll(async ({ system: shared }) => {
  system = shared;
  project = await system.project("Recipients", ["apns", "fcm", "webpush"]);
  const token = { name: "recipients", scopes: Scope.options };
  const { body } = expectStatus(await system.admin(`POST /projects/${project.id}/tokens`, { body: { token } }), 201);
  herald = new Herald({ url: system.gateway, token: body.token, maxRetries: 0 });
  await herald.templates.put("invoice", {
    title: "Invoice {{ number }}",
    body: "{{ name }}, you owe {{ amount | currency: 'EUR' }}.",
    link_to: "/invoices/{{ number }}",
    data: { number: "{{ number }}" },
    localizations: { de: { title: "Rechnung {{ number }} über {{ amount | number: 2 }}" } },
    variables: {
      number: { type: "string" },
      name: { type: "string", fallback: "friend" },
      amount: { type: "number" },
    },
  });
  await herald.templates.publish("invoice");
});
logOnFailure(() => system);

let users = 0;
/** A new user with a device. */
const customer = async (fields: Record<string, unknown> = {}) => {
  const user = `customer-${++users}`;
  const { device } = await project.register({ user_id: user, ...fields });
  return { user, device };
};

const pushesTo = async (id: string, token: string) =>
  (await system.simulators.pushes({ token })).map(payloadOf).filter((push) => push.notification_id === id);

const pushTo = (id: string, token: string) =>
  eventually(async () => {
    const [push] = await pushesTo(id, token);
    if (push === undefined) throw new Error(`no push of ${id} yet`);
    return push;
  });

/** The problems of a refused send. */
const refused = async (notification: Record<string, unknown>): Promise<string[]> => {
  const { status, body } = await project.call("POST /notifications", { body: { notification } });
  expect(status).toBe(422);
  return body.errors;
};

describe("a send to recipients", () => {
  test("shows each of them the texts with their own values, in the language of each device", async () => {
    const ann = await customer();
    const bea = await customer({ identifiers: { current_locale: "de-DE" } });
    const second = (await project.register({ user_id: bea.user })).device;
    const sent = await project.send({
      template: "invoice",
      variables: { amount: 3 },
      recipients: [
        { target: `user:${ann.user}`, variables: { number: "1/1", name: "Ann" } },
        { target: `user:${bea.user}`, variables: { number: "2", amount: 12.5 } },
        { target: "user:nobody", variables: { number: "3" } },
        { target: `user:${ann.user}`, variables: { number: "twice" } },
      ],
    } as unknown as Content);
    expect(sent).toMatchObject({
      template: { name: "invoice", version: 1 },
      title: "Invoice {{ number }}",
      targets: [],
      recipients: { kind: "user", lines: 4 },
    });
    expect(await pushTo(sent.id, ann.device.token)).toMatchObject({
      aps: { alert: { title: "Invoice 1/1", body: "Ann, you owe €3.00." } },
      link_to: "/invoices/1%2F1",
      data: { number: "1/1" },
    });
    expect(await pushTo(sent.id, bea.device.token)).toMatchObject({
      aps: { alert: { title: "Rechnung 2 über 12,50" } },
    });
    expect(await pushTo(sent.id, second.token)).toMatchObject({
      aps: { alert: { title: "Invoice 2", body: "friend, you owe €12.50." } },
    });
    const done = await project.final(sent.id);
    expect(done).toMatchObject({ status: "completed", counts: { devices: 3, accepted: 3 }, unmatched: [] });
    for (const { token } of [ann.device, bea.device, second]) expect(await pushesTo(sent.id, token)).toHaveLength(1);
  });

  test("fails the devices alone whose texts cannot be rendered", async () => {
    const [good, bad, missing] = [await customer(), await customer(), await customer()];
    const sent = await project.send({
      title: "Hi {{ name }}",
      link_to: "{{ link }}",
      recipients: [
        { target: `device:${good.device.id}`, variables: { name: "Good", link: "/a" } },
        { target: `device:${bad.device.id}`, variables: { name: "Bad", link: "javascript:alert(1)" } },
        { target: `device:${missing.device.id}`, variables: { link: "/b" } },
      ],
    } as unknown as Content);
    const done = await project.final(sent.id);
    expect(done).toMatchObject({
      counts: { devices: 3, accepted: 1, failed: 1, skipped: 1 },
      failures: { "link-refused": 1 },
      skips: { "value-missing": 1 },
    });
    expect(await pushTo(sent.id, good.device.token)).toMatchObject({
      aps: { alert: { title: "Hi Good" } },
      link_to: "/a",
    });
  });

  test("is accepted as a whole or not at all", async () => {
    const { user } = await customer();
    const target = `user:${user}`;
    expect(
      await refused({
        template: "invoice",
        recipients: [
          { target, variables: { number: "1", amount: 1 } },
          { target: "user:b", variables: { amount: "much", nubmer: "1" } },
          { target: "user:c" },
        ],
      }),
    ).toEqual([
      "notification.recipients.1.variables.nubmer: is not a variable of the template; it has `number`, `name`, `amount`",
      "notification.recipients.1.variables.amount: must be a number",
      "notification.recipients.1.variables.number: is required by the template",
      "notification.recipients.2.variables.number: is required by the template",
      "notification.recipients.2.variables.amount: is required by the template",
    ]);
    expect(
      await refused({ title: "a", recipients: [{ target }, { target: "topic:news" }, { target: "token:a" }] }),
    ).toEqual([
      "notification.recipients.1.target: must be `user:<id>`, `device:<id>` or `token:<push token>`",
      "notification.recipients.2.target: must be `user:` as the first one; a notification's recipients are all of one kind",
    ]);
    expect(await refused({ title: "a", recipients: [{ target }], targets: ["all"] })).toEqual([
      "notification.targets: either `targets` or `recipients` is required, not both",
    ]);
    expect(await refused({ title: "a" })).toHaveLength(1);
    const many = Array.from({ length: 2_001 }, (_, at) => ({ target: `user:many-${at}` }));
    expect(await refused({ title: "a", recipients: many })).toEqual([
      "notification.recipients: at most 2000 are accepted in a request",
    ]);
    expect(await refused({ title: "{{ a.b }} {% for a in b %}", recipients: [{ target }] })).toHaveLength(1);
  });

  test("is counted by a dry run, and answers a repeat with the first notification", async () => {
    const { user, device } = await customer();
    const notification = {
      template: "invoice",
      recipients: [
        { target: `user:${user}`, variables: { number: "9", amount: 2 } },
        { target: "user:nobody", variables: { number: "3", amount: 2 } },
      ],
    };
    const dry = await project.call("POST /notifications", {
      body: { notification: { ...notification, dry_run: true } },
    });
    expect(dry.body.data).toMatchObject({
      devices: { total: 1 },
      unmatched: ["user:nobody"],
      rendered: { ios: { aps: { alert: { title: "Invoice 9" } } } },
    });
    const headers = { "Idempotency-Key": "invoices-1" };
    const first = expectStatus(await project.call("POST /notifications", { body: { notification }, headers }), 202);
    const again = expectStatus(await project.call("POST /notifications", { body: { notification }, headers }), 202);
    expect(again.body.data.id).toBe(first.body.data.id);
    await project.final(first.body.data.id);
    expect(await pushesTo(first.body.data.id, device.token)).toHaveLength(1);
  });

  test("can be cancelled before it is due", async () => {
    const { user, device } = await customer();
    const sent = await project.send({
      title: "Hi {{ name }}",
      send_at: new Date(Date.now() + 3_600_000).toISOString(),
      recipients: [{ target: `user:${user}`, variables: { name: "x" } }],
    } as unknown as Content);
    expect(sent.status).toBe("scheduled");
    await herald.notifications.cancel(sent.id);
    expect(await project.final(sent.id)).toMatchObject({ status: "cancelled", counts: { devices: 0 } });
    expect(await pushesTo(sent.id, device.token)).toHaveLength(0);
  });
});

test("two thousand recipients are two pages, and each gets one push", async () => {
  const known = await Promise.all(Array.from({ length: 20 }, () => customer()));
  const recipients = Array.from({ length: 2_000 }, (_, at) => ({
    target: `user:${at % 100 === 0 ? known[at / 100]?.user : `unknown-${at}`}`,
    variables: { n: at },
  }));
  const sent = await project.send({ title: "No. {{ n }}", recipients } as unknown as Content);
  expect(await project.final(sent.id)).toMatchObject({ counts: { devices: 20, accepted: 20 } });
  for (const [at, { device }] of known.entries())
    expect((await pushesTo(sent.id, device.token)).map((push) => push.aps?.alert)).toEqual([
      { title: `No. ${at * 100}` },
    ]);
});
