import {
  type NotificationContent,
  newDeviceId,
  newNotificationId,
  newProjectId,
  type Platform,
  type Recipient,
} from "@herald/contracts";
import { describe, expect, test } from "vitest";
import { renderApns } from "./apns.ts";
import { renderDeclarative } from "./declarative.ts";
import { fcmMaxBytes, fcmWeight, renderFcm } from "./fcm.ts";
import { findOversizedPayloads } from "./find-oversized-payloads.ts";
import { pushForms, receiptAsker } from "./push-form.ts";
import { hasForms, type PushForm, perForm, plainForm } from "./render.ts";
import { renderWebPush } from "./webpush.ts";

const now = new Date();
const origin = { projectId: newProjectId(now), notificationId: newNotificationId(now) };
const hello: NotificationContent = { targets: ["all"], title: "Hello" };
const track = { id: "track", title: "Track", link_to: "/orders/42" };
const later = { id: "later", title: "Later", opens: false };
const withButtons: NotificationContent = {
  ...hello,
  buttons: [track, later],
  localizations: { de: { title: "Hallo", buttons: { track: "Verfolgen" } } },
};
const all = "buttons draws receipts updates";
const device = (capabilities?: string): Pick<Recipient, "id" | "capabilities"> => ({
  id: newDeviceId(now),
  ...(capabilities && { capabilities }),
});
const formOf = (
  content: NotificationContent,
  platform: Platform,
  capabilities?: string,
  lane: "direct" | "broadcast" = "direct",
) => (hasForms(content) ? pushForms(content, { ...origin, platform, lane })(device(capabilities)) : plainForm);

describe("which devices are asked", () => {
  const asked: NotificationContent = { ...hello, receipts: true };
  test.each<[string, NotificationContent, Platform, string | undefined, PushForm]>([
    ["an iPhone with an extension", asked, "ios", "receipts", { receipt: 0 }],
    ["an iPhone that claims to draw", asked, "ios", "draws", plainForm],
    ["an iPhone without capabilities", asked, "ios", undefined, plainForm],
    ["Android with a kit", asked, "android", "draws receipts", { receipt: 0 }],
    ["Android that cannot draw", asked, "android", "receipts", plainForm],
    ["Android that draws, and does not report", asked, "android", "draws", plainForm],
    ["Android at normal priority", { ...asked, priority: "normal" }, "android", all, plainForm],
    ["a browser at normal priority", { ...asked, priority: "normal" }, "web", all, { receipt: 0 }],
    ["a silent push", { ...asked, silent: true }, "ios", all, plainForm],
    ["nobody asked", hello, "ios", all, plainForm],
    ["a share of nothing", { ...hello, receipts: 0 }, "ios", all, plainForm],
    ["buttons alone", withButtons, "android", all, { buttons: true }],
    ["buttons for a phone that cannot draw", withButtons, "android", "buttons", plainForm],
    ["both", { ...withButtons, receipts: 1 }, "web", all, { receipt: 0, buttons: true }],
  ])("%s", (_, content, platform, capabilities, form) => expect(formOf(content, platform, capabilities)).toEqual(form));

  test("a broadcast's receipts come within 25 seconds", () => {
    expect(formOf(asked, "web", "receipts", "broadcast")).toEqual({ receipt: 25 });
  });

  test("a share is the same devices each time, whatever else they can do, and others for another notification", () => {
    const devices = Array.from({ length: 4_000 }, () => device("receipts"));
    const content = { ...hello, receipts: 0.25 };
    const ask = (push: { notificationId: typeof origin.notificationId }) =>
      devices.map(receiptAsker(content, { ...push, platform: "ios" }) ?? (() => false));
    const first = ask(origin);
    expect(ask(origin)).toEqual(first);
    const forms = pushForms(content, { ...origin, platform: "ios", lane: "broadcast" });
    expect(devices.map((one) => forms(one).receipt !== undefined)).toEqual(first);
    const share = (answers: boolean[]) => answers.filter(Boolean).length / answers.length;
    expect(share(first)).toBeGreaterThan(0.2);
    expect(share(first)).toBeLessThan(0.3);
    const other = ask({ notificationId: newNotificationId(now) });
    expect(share(first.map((one, at) => one && (other[at] ?? false)))).toBeLessThan(0.15);
  });

  test("each form is rendered once", () => {
    let rendered = 0;
    const bodyOf = perForm(() => ++rendered);
    const forms = pushForms({ ...withButtons, receipts: true }, { ...origin, platform: "web", lane: "direct" });
    for (const capabilities of [all, "receipts", "buttons", undefined, all, "receipts"])
      bodyOf(forms(device(capabilities)));
    expect(rendered).toBe(4);
  });
});

const both: PushForm = { receipt: 25, buttons: true };
const apns = (content: NotificationContent, form: PushForm, locale?: string) =>
  JSON.parse(renderApns(content, origin, form).body("T", locale));
const web = (content: NotificationContent, form: PushForm, locale?: string) =>
  JSON.parse(renderWebPush(content, origin, form).body("T", locale));
const message = (platform: Platform, content: NotificationContent, form: PushForm, locale?: string) => {
  const { body } = renderFcm(content, origin, platform, { ttlSeconds: 60, apnsExpiration: "0" }, form);
  return JSON.parse(body({ token: "t", kind: "token" }, "T", locale)).message;
};
const german = [{ ...track, title: "Verfolgen" }, later];

describe("iOS", () => {
  test("the extension gets the buttons, how soon to report, and a category that depends on the buttons", () => {
    const pushed = apns(withButtons, both, "de-AT");
    expect(pushed).toMatchObject({ receipt: 25, buttons: german, aps: { "mutable-content": 1 } });
    expect(pushed.aps.category).toMatch(/^herald\.[A-Za-z0-9_-]{16}$/);
    expect(apns({ ...withButtons, title: "Other" }, both, "de").aps.category).toBe(pushed.aps.category);
    expect(apns(withButtons, both).aps.category).not.toBe(pushed.aps.category);
    const { notification_id: _, project_id: __, token: ___, ...payload } = pushed;
    expect(message("ios", withButtons, both, "de").apns.payload).toEqual(payload);
  });

  test("an app's own category stays, and an override cannot change what the kit reads", () => {
    const content = { ...hello, receipts: true, category: "ORDER", ios: { receipt: 9, buttons: [] } };
    expect(apns(content, { receipt: 0 })).toMatchObject({
      receipt: 0,
      aps: { category: "ORDER", "mutable-content": 1 },
    });
  });
});

describe("Android", () => {
  test("the app draws what FCM would have shown, with the override", () => {
    const content: NotificationContent = {
      ...withButtons,
      body: "Text",
      image: "https://example.com/a.png",
      badge: 3,
      android_channel: "orders",
      link_to: "/orders",
      data: { order: "42" },
      collapse_id: "order-42",
      android: { android: { notification: { color: "#3366ff" } }, notification: { body: "Override" } },
    };
    const { data, android, notification } = message("android", content, both, "de");
    expect(notification).toBeUndefined();
    expect(android).toEqual({ priority: "HIGH", ttl: "60s", collapse_key: "order-42" });
    const { herald, ...rest } = data;
    expect(rest).toEqual({
      ...{ order: "42", link_to: "/orders", receipt: "25" },
      ...{ notification_id: origin.notificationId, project_id: origin.projectId, token: "T" },
    });
    expect(JSON.parse(herald)).toEqual({
      ...{ title: "Hallo", body: "Override", image: "https://example.com/a.png", buttons: german },
      ...{ channel: "orders", tag: "order-42", badge: 3, color: "#3366ff" },
    });
  });

  test("the drawn form is weighed too: its text is JSON in JSON", () => {
    const content = { ...hello, receipts: true, body: '"'.repeat(1_300) };
    const plain = message("android", content, plainForm);
    expect(fcmWeight(JSON.stringify({ message: plain }))).toBeLessThan(fcmMaxBytes);
    const problems = findOversizedPayloads(content, origin, ["android"], 200);
    expect(problems).toHaveLength(1);
    expect(problems[0]).toContain("for android, drawn by the app");
    expect(findOversizedPayloads({ ...content, receipts: false }, origin, ["android"], 200)).toEqual([]);
  });
});

describe("browsers", () => {
  test("the worker gets the buttons as actions, and where they lead", () => {
    expect(web(withButtons, both, "de")).toMatchObject({
      receipt: 25,
      buttons: german,
      notification: {
        actions: [
          { action: "track", title: "Verfolgen" },
          { action: "later", title: "Later" },
        ],
      },
    });
    expect(message("web", withButtons, both).data).toMatchObject({
      receipt: "25",
      buttons: JSON.stringify([track, later]),
    });
  });

  test("Safari runs the worker of a push that asks, and leaves one with buttons to the worker", () => {
    const site = "https://shop.example";
    const body = renderDeclarative(hello, origin, site, { receipt: 25 })("T");
    expect(JSON.parse(body ?? "")).toMatchObject({ mutable: true, receipt: 25, notification: { mutable: true } });
    expect(JSON.parse(renderDeclarative(hello, origin, site)("T") ?? "")).not.toHaveProperty("mutable");
    expect(renderDeclarative(withButtons, origin, site, both)("T")).toBeUndefined();
  });
});

test("a dangerous link of a button that came past the gateway is removed", () => {
  const content = { ...hello, buttons: [{ ...track, link_to: "javascript:alert(1)" }] };
  expect(apns(content, both).buttons).toEqual([{ id: "track", title: "Track" }]);
});
