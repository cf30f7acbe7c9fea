import type { ActivityRecord, FurtherToken } from "@herald/contracts";
import { expect, test } from "vitest";
import { channelSentence, channelsFor } from "./activity-channels.ts";

const createdAt = Date.parse("2030-01-31T09:00:00.000Z");
const notification = { created_at: "2030-01-31T09:00:00.000Z" };
const record = {
  ...{ createdAt, attributesType: "MatchAttributes" },
  channels: { "com.example.app/sandbox": { askedAt: createdAt, id: "Y2hhbm5lbA==", sent: 3 } },
} as unknown as ActivityRecord;
const shown = [{ app: "com.example.app", environment: "sandbox", version: 3 }];
const startToken = (more: Partial<FurtherToken> = {}): FurtherToken => ({
  ...{ type: "liveactivity", name: "MatchAttributes", token: "00", registered_at: notification.created_at, ...more },
});
const ios = { platform: "ios" } as const;
const saying = { ...ios, tokens: [startToken({ channels: true })] };

test.each([
  ["whose start token says so", { device: saying, delivery: {} }, shown],
  ["whose app starts the activity itself", { device: ios }, shown],
  ["with a push of its own", { device: { ...ios, tokens: [startToken()] }, delivery: {} }, []],
  [
    "that says so of another activity",
    { device: { ...ios, tokens: [startToken({ channels: true, name: "Other" })] }, delivery: {} },
    [],
  ],
  ["on Android", { device: { platform: "android" as const } }, []],
  ["that FCM serves", { device: { ...saying, provider: "fcm" as const } }, []],
])("a device %s", (_, facts, channels) => {
  expect(channelsFor({ notification, ...facts }, record)).toEqual(channels);
});

test("an activity that has the id of an earlier one says nothing of its notifications", () => {
  expect(channelsFor({ notification, device: saying }, { ...record, createdAt: createdAt + 1 })).toEqual([]);
  expect(channelsFor({ notification, device: saying }, undefined)).toEqual([]);
});

test("a problem may be Herald's own", () => {
  const sentence = channelSentence({ app: "com.example.app", environment: "sandbox", problem: "app-not-configured" });
  expect(sentence).toContain("or by their tokens: `app-not-configured`");
  expect(sentence).not.toContain("Apple said");
});
