import { gzipSync } from "node:zlib";
import { Herald } from "@herald/client";
import { Scope } from "@herald/contracts";
import { eventually, expectStatus, request } from "@herald/testing";
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
    const of = { token: project.token };
    const list = await request(system.gateway, `GET /api/v1/notifications/${sent.id}/recipients`, of);
    expect(list.body.data).toMatchObject({
      lines_stored: 3,
      recipients: 3,
      processed: 3,
      unmatched: 1,
      complete: true,
    });
    const errors = await request(system.gateway, `GET /api/v1/notifications/${sent.id}/recipients/errors`, of);
    expect(errors.body.data).toEqual([{ line: 3, field: "target", reason: "has no active device", code: "unmatched" }]);
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
      "notification.recipients.1.variables.number: is required by the template",
      "notification.recipients.1.variables.amount: must be a number",
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
  const known = await Promise.all(Array.from({ length: 5 }, () => customer()));
  const recipients = Array.from({ length: 2_000 }, (_, at) => ({
    target: `user:${known[at / 400]?.user ?? `unknown-${at}`}`,
    variables: { n: at, more: "x".repeat(200) },
  }));
  const sent = await project.send({ title: "No. {{ n }}", recipients } as unknown as Content);
  expect(await project.final(sent.id)).toMatchObject({ counts: { devices: 5, accepted: 5 } });
  for (const [at, { device }] of known.entries())
    expect((await pushesTo(sent.id, device.token)).map((push) => push.aps?.alert)).toEqual([
      { title: `No. ${at * 400}` },
    ]);
});

/** Uploads a file of recipients. */
const upload = async (id: string, body: string | Buffer, query = "", type = "application/x-ndjson") => {
  const response = await fetch(`${system.gateway}/api/v1/notifications/${id}/recipients${query}`, {
    method: "PUT",
    headers: { authorization: `Bearer ${project.token}`, "content-type": type },
    body: body as string,
  });
  // biome-ignore lint/suspicious/noExplicitAny: the tests say what they expect of it
  return { status: response.status, body: (await response.json()) as any };
};
const ndjson = (rows: readonly unknown[]): string => rows.map((row) => `${JSON.stringify(row)}\n`).join("");
const waiting = () =>
  project.send({ template: "invoice", variables: { amount: 1 }, recipients: { upload: "user" } } as unknown as Content);

describe("an upload of recipients", () => {
  test("is sent line by line, and says what was wrong with which", async () => {
    const [ann, bea] = [await customer(), await customer()];
    const sent = await waiting();
    expect(sent).toMatchObject({ targets: [], recipients: { kind: "user", upload: true } });
    const file = ndjson([
      { target: `user:${ann.user}`, variables: { number: "1" } },
      { target: `user:${ann.user}`, variables: { number: "again" } },
      { target: "user:nobody", variables: { number: "2" } },
      { target: "topic:news" },
      { target: `user:${bea.user}`, variables: { nubmer: "3" } },
      { target: `user:${bea.user}`, variables: { number: "4", amount: 5 } },
    ]);
    const whole = `${file}not JSON\n\n`;
    const dry = await upload(sent.id, whole, "?dry_run=true");
    expect(dry.body.data).toMatchObject({ lines_stored: 8, recipients: 3, refused: 3, duplicates: 1, complete: false });
    const found = dry.body.data.errors as { line: number; field: string }[];
    expect(found.map(({ line, field }) => `${line} ${field}`)).toEqual([
      "4 target",
      "5 variables.nubmer",
      "5 variables.number",
      "7 ",
    ]);
    expect((await herald.notifications.recipients(sent.id)).lines_stored).toBe(0);

    const stored = await upload(sent.id, whole);
    expect(stored).toMatchObject({ status: 200, body: { data: { lines_stored: 8, recipients: 3, complete: true } } });
    expect(await pushTo(sent.id, ann.device.token)).toMatchObject({ aps: { alert: { title: "Invoice 1" } } });
    expect(await pushTo(sent.id, bea.device.token)).toMatchObject({ aps: { alert: { title: "Invoice 4" } } });
    expect(await project.final(sent.id)).toMatchObject({ status: "completed", counts: { devices: 2, accepted: 2 } });
    expect(await herald.notifications.recipients(sent.id)).toEqual({
      ...{ kind: "user", lines_stored: 8, recipients: 3, processed: 3, refused: 3, duplicates: 1, unmatched: 1 },
      ...{ errors_left_out: 0, complete: true },
    });
    const errors = await herald.notifications.recipientErrors(sent.id).page();
    expect(errors.data.map(({ line, field, code }) => [line, field, code])).toEqual([
      [3, "target", "unmatched"],
      [4, "target", "invalid-value"],
      [5, "variables.nubmer", "invalid-value"],
      [5, "variables.number", "missing"],
      [7, "", "invalid-format"],
    ]);
    const late = await upload(sent.id, whole);
    expect([late.status, late.body.type]).toEqual([409, expect.stringContaining("recipients-complete")]);
  });

  test("continues after its stored lines, also as CSV and gzip, and reaches nobody twice", async () => {
    const known = await Promise.all(Array.from({ length: 4 }, () => customer()));
    const sent = await waiting();
    const rows = Array.from({ length: 5_000 }, (_, at) => `user:${known[at / 1_200]?.user ?? `unknown-${at}`},${at},`);
    const file = `target,number,name\n${rows.join("\n")}\n`;
    const cut = Buffer.from(file).subarray(0, 60_000);
    const broken = await fetch(`${system.gateway}/api/v1/notifications/${sent.id}/recipients`, {
      method: "PUT",
      headers: { authorization: `Bearer ${project.token}`, "content-type": "text/csv" },
      duplex: "half",
      body: new ReadableStream({
        start: (controller) => controller.enqueue(cut),
        pull: (controller) =>
          eventually(async () => {
            if ((await herald.notifications.recipients(sent.id)).lines_stored === 0)
              throw new Error("nothing is stored");
          }).then(() => controller.error(new Error("broken"))),
      }),
    } as RequestInit).catch(() => undefined);
    expect(broken).toBeUndefined();
    // What had arrived may still be stored.
    await eventually(async () => {
      const { lines_stored: at } = await herald.notifications.recipients(sent.id);
      expect(at).toBeGreaterThan(0);
      const wrong = await upload(sent.id, file, "", "text/csv");
      expect([wrong.status, wrong.body.errors]).toEqual([
        409,
        [
          `after_line: must be ${at}, the number of lines that Herald has stored; send the whole file, it skips those lines`,
        ],
      ]);
    });
    const done = await herald.notifications.uploadRecipients(sent.id, () => new Blob([gzipSync(file)]), {
      contentType: "text/csv",
    });
    expect(done).toMatchObject({ lines_stored: 5_001, recipients: 5_000, refused: 0, duplicates: 0, complete: true });
    expect(await project.final(sent.id)).toMatchObject({ counts: { devices: 4, accepted: 4 } });
    for (const [index, { device }] of known.entries())
      expect((await pushesTo(sent.id, device.token)).map((push) => push.aps?.alert)).toMatchObject([
        { title: `Invoice ${index * 1_200}` },
      ]);
  });

  test("ends with a cancel, and takes no more lines then", async () => {
    const { user, device } = await customer();
    const sent = await waiting();
    await herald.notifications.cancel(sent.id);
    expect(await project.final(sent.id)).toMatchObject({ status: "cancelled" });
    const late = await upload(sent.id, ndjson([{ target: `user:${user}`, variables: { number: "1" } }]));
    expect([late.status, late.body.type]).toEqual([
      409,
      expect.stringMatching(/notification-final|recipients-complete/),
    ]);
    expect(await herald.notifications.recipients(sent.id)).toMatchObject({ complete: false });
    expect(await pushesTo(sent.id, device.token)).toHaveLength(0);
  });

  test("is one of four of its project", async () => {
    const other = await system.project("Uploads", ["apns"]);
    const notification = { title: "Hi", recipients: { upload: "device" } };
    const open = () => other.call("POST /notifications", { body: { notification } });
    const sent = await Promise.all(Array.from({ length: 4 }, open));
    expect(sent.map(({ status }) => status)).toEqual([202, 202, 202, 202]);
    await eventually(async () => expect((await open()).status).toBe(429));
    expect(await refused({ title: "a", recipients: { upload: "topic" } })).toHaveLength(1);
    expect(await refused({ title: "a", recipients: { upload: "user" }, send_at: "2099-01-01T00:00:00Z" })).toHaveLength(
      1,
    );
    expect(await refused({ title: "a", recipients: { upload: "user" }, dry_run: true })).toHaveLength(1);
    for (const { body } of sent) await other.call(`DELETE /notifications/${body.data.id}`);
  });
});
