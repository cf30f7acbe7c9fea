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
  project = await system.project("Device values", ["apns", "fcm", "webpush"]);
  const token = { name: "values", scopes: Scope.options };
  const { body } = expectStatus(await system.admin(`POST /projects/${project.id}/tokens`, { body: { token } }), 201);
  herald = new Herald({ url: system.gateway, token: body.token, maxRetries: 0 });
});
logOnFailure(() => system);

const pushesTo = async (id: string, token: string) =>
  (await system.simulators.pushes({ token })).map(payloadOf).filter((push) => push.notification_id === id);
const alertTo = (id: string, token: string) =>
  eventually(async () => {
    const [push, more] = await pushesTo(id, token);
    if (push === undefined || more !== undefined) throw new Error(`not one push of ${id}`);
    return { ...(push.aps?.alert as object), ...(push.link_to !== undefined && { link_to: push.link_to }) };
  });

const refused = async (notification: Record<string, unknown>): Promise<string[]> => {
  const { status, body } = await project.call("POST /notifications", { body: { notification } });
  expect(status).toBe(422);
  return body.errors;
};

/** Devices of a topic: one with all values, one with a value that no text can show, and one without any. */
const audience = async (topic: string) => {
  const register = async (fields: object & Parameters<Project["register"]>[0]) =>
    (await project.register({ topics: [topic], ...fields })).device;
  const pro = await register({
    user_id: `ann&${topic}`,
    metadata: { plan: "pro", address: { city: "Kiel" } },
    identifiers: { app_version: "2.4.1", current_locale: "de-DE" },
  });
  const long = await register({ metadata: { plan: "x".repeat(257) } });
  const none = await register({});
  return { pro, long, none };
};

describe("texts with values of the device", () => {
  test("show each device its own, and skip one that lacks a value without a default", async () => {
    const { pro, long, none } = await audience("values");
    const sent = await project.send({
      title: "{{ n }} for {{ device.metadata.plan | upcase }}",
      body: "{{ device.identifiers.app_version | default: 'an old app' }} in {{ device.metadata.address.city | default: '?' }}",
      link_to: "/users/{{ user.id | default: 'none' }}",
      localizations: { de: { title: "{{ n }} für {{ device.metadata.plan }}" } },
      variables: { n: 2 },
      targets: ["topic:values"],
    } as unknown as Content);
    expect(await alertTo(sent.id, pro.token)).toEqual({
      title: "2 für pro",
      body: "2.4.1 in Kiel",
      link_to: "/users/ann%26values",
    });
    expect(await project.final(sent.id)).toMatchObject({
      counts: { devices: 3, accepted: 1, skipped: 2 },
      skips: { "value-missing": 2 },
    });
    for (const { token } of [long, none]) expect(await pushesTo(sent.id, token)).toEqual([]);
  });

  test("come from a template, choose words without being shown, and reach single devices and conditions too", async () => {
    const { pro, none } = await audience("template-values");
    await herald.templates.put("plan", {
      title: "{% if device.metadata.plan == 'pro' %}Thank you{% else %}Try Pro{% endif %}, {{ name }}",
      variables: { name: { type: "string", fallback: "friend" } },
    });
    await herald.templates.publish("plan");
    for (const targets of [
      [`device:${pro.id}`, `device:${none.id}`],
      ["condition:'template-values' in topics && (metadata.plan == 'pro' || !exists(metadata.plan))"],
    ]) {
      const sent = await project.send({ template: "plan", targets } as unknown as Content);
      expect(await alertTo(sent.id, pro.token)).toEqual({ title: "Thank you, friend" });
      expect(await alertTo(sent.id, none.token)).toEqual({ title: "Try Pro, friend" });
    }
  });

  test("stand beside the values of a recipient", async () => {
    const { pro } = await audience("recipient-values");
    const sent = await project.send({
      title: "{{ n }}: {{ device.metadata.plan }}, {{ user.id }}",
      recipients: [{ target: "user:ann&recipient-values", variables: { n: 7 } }],
    } as unknown as Content);
    expect(await alertTo(sent.id, pro.token)).toEqual({ title: "7: pro, ann&recipient-values" });
    await project.final(sent.id);
  });

  test("the user alone needs no values of the device", async () => {
    const { pro, none } = await audience("user-values");
    const sent = await project.send({
      title: "Hi {{ user.id | default: 'you' }}",
      variables: {},
      targets: [`device:${pro.id}`, `device:${none.id}`],
    } as unknown as Content);
    expect(await alertTo(sent.id, pro.token)).toEqual({ title: "Hi ann&user-values" });
    expect(await alertTo(sent.id, none.token)).toEqual({ title: "Hi you" });
  });

  test("are refused in links, at other places of a device, and when there are too many", async () => {
    const targets = ["all"];
    const variables = {};
    expect(await refused({ title: "a", link_to: "/{{ device.metadata.plan }}", variables, targets })).toEqual([
      "notification.link_to: line 1, column 5: `device.metadata.plan` is not accepted in a link: the app on the device wrote it",
    ]);
    for (const path of ["device.token", "device.metadata", "device", "user.name", "device.metadata.__proto__"])
      expect(await refused({ title: `{{ ${path} }}`, variables, targets })).toEqual([
        `notification.title: line 1, column 4: \`${path}\` is no value of a device; there are \`device.metadata.<name>\`, \`device.identifiers.<name>\` with up to 5 names, and \`user.id\``,
      ]);
    const many = Array.from({ length: 11 }, (_, at) => `{{ device.metadata.v${at} }}`).join("");
    expect(await refused({ title: many, variables, targets })).toEqual([
      "notification: its texts show 11 values of a device, and at most 10 are accepted",
    ]);
  });

  test("are placeholders in a dry run, and a device's own in the preview of a template", async () => {
    const { pro } = await audience("preview-values");
    const notification = { title: "{{ device.metadata.plan }}", variables: {}, targets: [`device:${pro.id}`] };
    const dry = await project.call("POST /notifications", {
      body: { notification: { ...notification, dry_run: true } },
    });
    expect(dry.body.data.rendered.ios.aps.alert).toEqual({ title: "<device.metadata.plan>" });
    await herald.templates.put("of-device", {
      title: "{{ device.metadata.plan }} {{ user.id }}",
      localizations: { de: { body: "{{ device.identifiers.app_version }}" } },
    });
    const titleOf = async (preview: Parameters<typeof herald.templates.preview>[1]) =>
      ((await herald.templates.preview("of-device", preview)).ios.payload.aps as { alert: unknown }).alert;
    expect(await titleOf({ device: pro.id })).toEqual({ title: "pro ann&preview-values", body: "2.4.1" });
    expect(await titleOf({})).toEqual({ title: "<device.metadata.plan> <user.id>" });
    await expect(titleOf({ device: "dev_06bq4ghm31tz5d2ns8y7k9w0ac" })).rejects.toMatchObject({
      status: 404,
      slug: "device-not-found",
    });
  });
});
