import { Herald, HeraldError } from "@herald/client";
import { Scope } from "@herald/contracts";
import { eventually, expectStatus, readStream, request } from "@herald/testing";
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
  project = await system.project("Templates", ["apns", "fcm", "webpush"]);
  const token = { name: "templates", scopes: Scope.options };
  const { body } = expectStatus(await system.admin(`POST /projects/${project.id}/tokens`, { body: { token } }), 201);
  herald = new Herald({ url: system.gateway, token: body.token, maxRetries: 0 });
});
logOnFailure(() => system);

const shipped = {
  title: "Order {{ order }} has shipped",
  body: "Hi {{ name }}, {{ count }} {{ count | plural: one: 'parcel', other: 'parcels' }} {% if fast %}today{% else %}soon{% endif %}.",
  link_to: "/orders/{{ order }}",
  data: { order: "{{ order }}", note: "plain" },
  sound: "default",
  localizations: { de: { title: "Bestellung {{ order }} ist unterwegs" } },
  variables: {
    order: { type: "string" },
    name: { type: "string", fallback: "friend" },
    count: { type: "number", fallback: 1 },
    fast: { type: "boolean", fallback: false },
  },
} as const;

const pushOf = (id: string, token: string) =>
  eventually(async () => {
    const push = (await system.simulators.pushes({ token })).find((one) => payloadOf(one).notification_id === id);
    if (push === undefined) throw new Error(`no push of ${id} yet`);
    return payloadOf(push);
  });

/** The problems of a refused send. */
const refused = async (notification: Record<string, unknown>): Promise<string[]> => {
  const { status, body } = await project.call("POST /notifications", { body: { notification } });
  expect(status).toBe(422);
  return body.errors;
};

describe("a send from a template", () => {
  test("has its texts, rendered with the values, in the language of each device", async () => {
    const english = (await project.register()).device;
    const german = (await project.register({ identifiers: { current_locale: "de-DE" } })).device;
    await herald.templates.put("shipped", shipped);
    expect(await refused({ template: "shipped", targets: [english.id] })).toEqual([
      "notification.template: the project has no published template `shipped`",
    ]);
    expect(await herald.templates.publish("shipped")).toEqual({ version: 1 });

    const sent = await project.send({
      template: "shipped",
      variables: { order: "4/2 ü", count: 2, fast: true },
      targets: [english.id, german.id],
    } as Content);
    expect(sent).toMatchObject({ template: { name: "shipped", version: 1 }, title: "Order 4/2 ü has shipped" });
    expect(await pushOf(sent.id, english.token)).toMatchObject({
      aps: { alert: { title: "Order 4/2 ü has shipped", body: "Hi friend, 2 parcels today." }, sound: "default" },
      link_to: "/orders/4%2F2%20%C3%BC",
      data: { order: "4/2 ü", note: "plain" },
    });
    expect(await pushOf(sent.id, german.token)).toMatchObject({
      aps: { alert: { title: "Bestellung 4/2 ü ist unterwegs" } },
    });
    expect(await project.final(sent.id)).toMatchObject({ template: { name: "shipped", version: 1 } });
    await eventually(async () => {
      const events = await readStream(system.broker, "PUSH_EVENTS", `push.evt.v1.${project.id}.notification.accepted`);
      expect(events.map(({ body }) => body).join()).toContain('"template":{"name":"shipped","version":1}');
    });
  });

  test("is a version: a draft changes nothing, the next version changes the next send, and a repeat answers the same", async () => {
    const { device } = await project.register();
    const variables = { text: { type: "string" } } as const;
    await herald.templates.put("greeting", { title: "Hi {{ text }}", variables });
    await herald.templates.publish("greeting");
    const notification = { template: "greeting", variables: { text: "Ann" }, targets: [device.id] };
    const headers = { "Idempotency-Key": "greeting-1" };
    const first = expectStatus(await project.call("POST /notifications", { body: { notification }, headers }), 202);

    await herald.templates.put("greeting", { title: "Good day {{ text }}", variables });
    expect((await project.send(notification as Content)).title).toBe("Hi Ann");
    expect(await herald.templates.publish("greeting")).toEqual({ version: 2 });
    expect(await herald.templates.publish("greeting")).toEqual({ version: 2 });
    expect((await project.send(notification as Content)).title).toBe("Good day Ann");

    const repeated = await project.call("POST /notifications", { body: { notification }, headers });
    expect(repeated.headers.get("idempotent-replayed")).toBe("true");
    expect(repeated.body).toEqual(first.body);

    await herald.templates.delete("greeting");
    expect(await refused(notification)).toHaveLength(1);
    const gone = await project.call("POST /notifications", { body: { notification }, headers });
    expect([gone.status, gone.body]).toEqual([202, first.body]);
  });

  test("replaces the template's fields in every language, and says what is wrong with its values", async () => {
    const { device } = await project.register({ identifiers: { current_locale: "de" } });
    await herald.templates.put("rules", shipped);
    await herald.templates.publish("rules");
    const targets = [device.id];
    const own = await project.send({
      template: "rules",
      variables: { order: "1" },
      title: "{{ order }}!",
      targets,
    } as Content);
    expect(own).toMatchObject({ title: "1!", sound: "default" });
    expect(await pushOf(own.id, device.token)).toMatchObject({ aps: { alert: { title: "1!" } } });

    expect(await refused({ template: "rules", targets })).toEqual([
      "notification.variables.order: is required by the template",
    ]);
    expect(await refused({ template: "rules", variables: { order: 1, odrer: "1", count: "2" }, targets })).toEqual([
      "notification.variables.odrer: is not a variable of the template; it has `order`, `name`, `count`, `fast`",
      "notification.variables.order: must be a text",
      "notification.variables.count: must be a number",
    ]);
    expect(await refused({ template: "rules", variables: { order: "x".repeat(300) }, targets })).toEqual([
      "notification.title: must be at most 256 characters",
      "notification.localizations.de.title: must be at most 256 characters",
    ]);
    const bad = { template: "rules", variables: { order: "1" }, title: "{% for x in y %}", targets };
    expect(await refused(bad)).toEqual([
      expect.stringContaining("notification.title: line 1, column 1: the tag `for` is not"),
    ]);
  });

  test("is one of a batch, each accepted or refused alone", async () => {
    const { device } = await project.register();
    await herald.templates.put("each", { body: "{{ n | number }}", variables: { n: { type: "number" } } });
    await herald.templates.publish("each");
    const send = (n: unknown) => ({ template: "each", variables: { n }, targets: [device.id] }) as never;
    const results = await herald.notifications.sendBatch([send(1_234), send("x"), send(2)]);
    expect(results.map((one) => ("id" in one ? "id" : one.errors))).toEqual([
      "id",
      ["notifications.1.variables.n: must be a number"],
      "id",
    ]);
    const [first] = results;
    if (first && "id" in first)
      expect(await pushOf(first.id, device.token)).toMatchObject({ aps: { alert: { body: "1,234" } } });
  });
});

describe("without a template", () => {
  test("braces are text, and with `variables` they are Liquid", async () => {
    const { device } = await project.register();
    const targets = [device.id];
    const plain = await project.send({ title: "{{ name }} {% if %}", targets });
    expect(await pushOf(plain.id, device.token)).toMatchObject({ aps: { alert: { title: "{{ name }} {% if %}" } } });
    const liquid = await project.send({ title: "Hi {{ name }}", variables: { name: "Ann" }, targets } as Content);
    expect(liquid).toMatchObject({ title: "Hi Ann" });
    expect(liquid).not.toHaveProperty("variables");
    expect(await refused({ title: "Hi {{ nmae }}", variables: { name: "Ann" }, targets })).toEqual([
      "notification.title: line 1, column 7: `nmae` is not among the variables `name`",
    ]);
    expect(
      await refused({ title: "Hi", link_to: "{{ link }}", variables: { link: "javascript:alert(1)" }, targets }),
    ).toEqual([expect.stringContaining("notification.link_to: may not begin with `javascript:`")]);
    expect(await refused({ title: `{{${"x".repeat(300)}`, targets })).toEqual([
      "notification.title: must be at most 256 characters",
    ]);
    expect(await refused({ title: "Hi", locale: "de", targets })).toEqual([
      "notification.locale: needs `template`, `variables` or `recipients`",
    ]);
  });
});

describe("a template", () => {
  test("is refused with the field, the line and the column", async () => {
    const template = {
      title: "a\n{{ nmae }}",
      body: "{{ name | shout }}",
      variables: { name: { type: "string" } },
    } as const;
    const error = await herald.templates.put("wrong", template).catch((thrown) => thrown);
    expect(error).toBeInstanceOf(HeraldError);
    expect(error.errors).toEqual([
      "template.title: line 2, column 4: `nmae` is not among the variables `name`",
      expect.stringMatching(/^template.body: line 1, column 11: the filter `shout` is not supported/),
    ]);
    for (const [content, problem] of [
      [{ title: "x", variables: { constructor: { type: "string" } } }, /variables.constructor: .*must be 1 to 32/],
      [{ title: "x", variables: { user: { type: "string" } } }, /variables.user: /],
      [{ title: "x", variables: { n: { type: "number", fallback: "1" } } }, /variables.n.fallback: must be a number/],
      [{ sound: "x" }, /a `title` or a `body` is required/],
      [{ title: "x", targets: ["all"] }, /targets: unknown field/],
      [{ title: "x", body: "y".repeat(33_000) }, /32768 bytes/],
    ] as const)
      expect((await herald.templates.put("wrong", content as never).catch((thrown) => thrown)).message).toMatch(
        problem,
      );
  });

  test("is previewed on each platform, stored or not", async () => {
    await herald.templates.put("seen", shipped);
    const preview = await herald.templates.preview("seen", { variables: { order: "7" }, locale: "de" });
    expect(preview.ios).toMatchObject({
      payload: { aps: { alert: { title: "Bestellung 7 ist unterwegs" } } },
      problems: [],
    });
    expect(preview.web.bytes).toBeGreaterThan(100);
    const big = { title: "x", data: { more: "x".repeat(5_000) } };
    const oversized = await herald.templates.preview("seen", { content: big });
    expect(oversized.android.problems).toEqual([expect.stringMatching(/renders to \d+ bytes, at most 4096 fit/)]);
    await expect(herald.templates.preview("seen", { variables: {} })).rejects.toThrow(
      "preview.variables.order: is required",
    );
    await expect(herald.templates.preview("none", {})).rejects.toThrow(HeraldError);
  });

  test("is changed only with its scope, and by operators with a trace that quotes nothing", async () => {
    const body = { template: { title: "Secret {{ name }}", variables: { name: { type: "string" } } } };
    expect((await project.call("PUT /templates/mine", { body })).status).toBe(403);
    const as = { token: system.adminToken, headers: { "Herald-Project": project.id } };
    expect((await request(system.gateway, "PUT /api/v1/templates/mine", { ...as, body })).status).toBe(201);
    expect((await request(system.gateway, "POST /api/v1/templates/mine/publish", as)).status).toBe(200);
    const preview = { preview: { variables: { name: "Ann" } } };
    expect(
      (await request(system.gateway, "POST /api/v1/templates/mine/preview", { ...as, body: preview })).status,
    ).toBe(200);
    expect(await herald.templates.get("mine")).toMatchObject({ author: { id: "root", name: "root" }, published: 1 });
    const rows = await eventually(async () => {
      const found = (await system.admin(`GET /audit?project_id=${project.id}&per_page=100`)).body.data;
      const actions = found.map(({ action }: { action: string }) => action);
      expect(actions).toEqual(expect.arrayContaining(["putTemplate", "publishTemplate"]));
      return found;
    });
    expect(JSON.stringify(rows)).not.toContain("Secret");
    expect(rows.map(({ action }: { action: string }) => action)).not.toContain("previewTemplate");
    expect(rows.find(({ action }: { action: string }) => action === "putTemplate")).toMatchObject({
      target: "/api/v1/templates/mine",
      after: { fields: ["template.title", "template.variables"] },
    });
  });
});
