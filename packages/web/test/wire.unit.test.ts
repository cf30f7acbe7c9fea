import {
  type ChangeDevice,
  type Device,
  type DeviceSummary,
  Identification,
  NotificationContent,
  type OpenNotification,
  type Preferences,
  type Problem,
  type WebPushKey,
} from "@herald/contracts";
import { renderWebPush } from "@herald/payload";
import { expect, expectTypeOf, test } from "vitest";
import type { z } from "zod";
import type {
  IdentificationAnswer,
  IdentificationBody,
  LoginAnswer,
  LoginBody,
  PreferencesAnswer,
  PushPayload,
  ReportBody,
  WebPushKeyAnswer,
} from "../src/wire.ts";

/** The kit has no dependency, so it says by itself what it sends and reads: here its words are held to the contracts. */

test("what the kit sends is what the contracts take", () => {
  expectTypeOf<Omit<IdentificationBody, "project_id">>().toExtend<Omit<z.input<typeof Identification>, "project_id">>();
  expectTypeOf<LoginBody>().toExtend<z.input<typeof ChangeDevice>>();
  expectTypeOf<Omit<ReportBody, "project_id">>().toExtend<Omit<z.input<typeof OpenNotification>, "project_id">>();
  const body: IdentificationBody = {
    project_id: "prj_06bq4ghm31tz5d2ns8y7k9w0ac",
    platform: "web",
    identifier: "https://push.example.com/1",
    previous_identifier: "https://push.example.com/0",
    keys: { p256dh: `B${"A".repeat(86)}`, auth: "A".repeat(22), vapid_key: `B${"A".repeat(86)}` },
    capabilities: ["receipts", "buttons"],
    identifiers: { current_locale: "de", current_time_zone: "Europe/Berlin" },
    metadata: { plan: "pro" },
  };
  expect(Identification.safeParse(body).error).toBeUndefined();
});

test("what the kit reads is what the contracts answer", () => {
  expectTypeOf<{ data: z.output<typeof WebPushKey> }>().toExtend<WebPushKeyAnswer>();
  expectTypeOf<{ data: z.output<typeof DeviceSummary>; credential: string }>().toExtend<IdentificationAnswer>();
  expectTypeOf<{ data: z.output<typeof Device> }>().toExtend<LoginAnswer>();
  expectTypeOf<{ data: z.output<typeof Preferences> }>().toExtend<PreferencesAnswer>();
  expectTypeOf<z.output<typeof Problem>>().toExtend<{ type: string; errors: string[] }>();
});

test("what the worker reads is what is rendered", () => {
  const content = NotificationContent.parse({
    title: "Hello",
    body: "Words",
    targets: ["all"],
    link_to: "/inbox",
    badge: 3,
    badge_image: "https://example.com/badge.png",
    data: { order: "1" },
  });
  const origin = {
    projectId: "prj_06bq4ghm31tz5d2ns8y7k9w0ac",
    notificationId: "ntf_06bq4ghm31tz5d2ns8y7k9w0ac",
  } as const;
  const rendered = JSON.parse(renderWebPush(content, origin).body("v2.token"));
  expect(rendered).toEqual({
    notification: { title: "Hello", body: "Words", tag: origin.notificationId, badge: "https://example.com/badge.png" },
    app_badge: 3,
    link_to: "/inbox",
    data: { order: "1" },
    notification_id: origin.notificationId,
    project_id: origin.projectId,
    token: "v2.token",
  } satisfies PushPayload & { notification: Record<string, unknown> });
});
