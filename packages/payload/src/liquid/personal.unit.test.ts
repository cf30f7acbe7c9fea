import type { NotificationContent, PersonalTexts } from "@herald/contracts";
import { newNotificationId, newProjectId } from "@herald/contracts";
import { describe, expect, test } from "vitest";
import { renderFcm } from "../fcm.ts";
import { compileTexts } from "../liquid-parser/index.ts";
import { createRenderPersonal } from "./personal.ts";
import { encodeTexts } from "./texts.ts";

const now = new Date();
const origin = { projectId: newProjectId(now), notificationId: newNotificationId(now) };
const content: NotificationContent = {
  targets: ["all"],
  title: "Hello {{ name }}",
  buttons: [{ id: "track", title: "Track", link_to: "/orders/42" }],
  localizations: { de: { title: "Hallo {{ name }}", buttons: { track: "Verfolgen" } } },
};
const personal: PersonalTexts = {
  texts: encodeTexts(compileTexts(content, new Set(["name"])).content),
  locale: "en",
  values: { name: "Ann" },
};
const render = createRenderPersonal(content, personal);

describe("texts of one device", () => {
  test.each([
    ["de-AT", "Hallo Ann", "Verfolgen"],
    ["fr", "Hello Ann", "Track"],
    [undefined, "Hello Ann", "Track"],
  ])("in the language %s have the titles of its buttons", (locale, title, button) => {
    const rendered = render({}, locale);
    if (!("content" in rendered)) throw new Error(rendered.detail);
    const lifetime = { ttlSeconds: 60, apnsExpiration: "0" };
    const { body } = renderFcm(rendered.content, origin, "android", lifetime, { buttons: true });
    const json = body({ kind: "token", token: "t" }, "o", locale);
    expect(json).toContain(title);
    expect(json).toContain(button);
  });

  test("that no gateway compiled fail for that device alone", () => {
    expect(createRenderPersonal(content, { ...personal, texts: "no JSON" })({}, undefined)).toMatchObject({
      reason: "render-failed",
    });
  });
});
