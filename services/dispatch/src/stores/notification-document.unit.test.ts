import { newNotificationId, newProjectId, type SendV1 } from "@herald/contracts";
import { toTags } from "@herald/rules";
import { expect, test } from "vitest";
import { newFacts } from "./notification-document.ts";

const at = new Date("2030-01-01T00:00:00Z");

test.each([
  { kind: "news" },
  { labels: { campaign: "spring" } },
  { push_type: "voip" as const },
  { activity: { id: "match-1", event: "start" as const } },
  { labels: {} },
  {},
])("a send with %j has its tags", (fields) => {
  const send = {
    projectId: newProjectId(at),
    notificationId: newNotificationId(at),
    content: { title: "Hello", targets: ["all"], ...fields },
    acceptedAt: at.toISOString(),
    expiresAt: at.toISOString(),
  } as unknown as SendV1;
  expect(newFacts(send).tags).toEqual(toTags(fields as Parameters<typeof toTags>[0]));
});
