import type { NotificationContent } from "@herald/contracts";
import { expect, test } from "vitest";
import recorded from "../test/recorded-payloads.json" with { type: "json" };
import { renderApns } from "./apns.ts";
import { renderDeclarative } from "./declarative.ts";
import { renderFcm } from "./fcm.ts";
import { renderWebPush } from "./webpush.ts";

/** Payloads byte for byte as an earlier version rendered them: apps parse them, so they change only by a decision. */

const origin = {
  projectId: "prj_06bq4ghm31tz5d2ns8y7k9w0ac",
  notificationId: "ntf_06bq4ghm31tz5d2ns8y7k9w0ac",
} as const;
const lifetime = { ttlSeconds: 60, apnsExpiration: "1900000000" };
const target = { token: "fcm-token", kind: "token" } as const;

const rendered = (content: NotificationContent, locale: string | undefined) => {
  const fcm = (platform: "android" | "ios" | "web") =>
    renderFcm(content, origin, platform, lifetime).body(target, "T", locale);
  const apns = renderApns(content, origin);
  const web = renderWebPush(content, origin);
  return {
    apns: `${apns.pushType} ${apns.priority} ${apns.body("T", locale)}`,
    fcm_android: fcm("android"),
    fcm_ios: fcm("ios"),
    fcm_web: fcm("web"),
    webpush: `${web.urgency} ${web.body("T", locale)}`,
    declarative: renderDeclarative(content, origin, "https://shop.example")("T", locale) ?? "none",
  };
};

const cases = Object.entries(recorded).flatMap(([name, { content, payloads }]) =>
  Object.entries(payloads).map(([locale, expected]) => ({ name, locale, content, expected })),
);

test.each(cases)("$name for the locale $locale", ({ content, locale, expected }) => {
  expect(rendered(content as NotificationContent, locale === "none" ? undefined : locale)).toEqual(expected);
});
