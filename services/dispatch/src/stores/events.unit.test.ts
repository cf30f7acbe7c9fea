import { newNotificationId, newProjectId } from "@herald/contracts";
import { expect, test } from "vitest";
import { notificationChanged, notificationPaused, notificationResumed } from "./events.ts";

test("changes within one millisecond have an event each", () => {
  const at = new Date();
  const by = { id: "root", name: "root" } as const;
  const notification = { _id: newNotificationId(at), projectId: newProjectId(at) };
  const ids = Array.from({ length: 2 }, () => [
    notificationPaused(notification, { at, by }).id,
    notificationResumed(notification, at, by).id,
    notificationChanged(notification, { at, sendAt: at, zone: undefined }).id,
  ]).flat();
  expect(new Set(ids).size).toBe(6);
});
