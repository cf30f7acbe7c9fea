import { expect, test } from "vitest";
import { NewNotification } from "./send-notification.ts";
import { TemplateContent } from "./templates.ts";

/** The problems of a send. */
const problemsOf = (change: object): string[] => {
  const notification = { title: "Hello", targets: ["user:ann"], escalate_after: 3_600, ...change };
  const { error } = NewNotification.safeParse(notification);
  return (error?.issues ?? []).map(({ path, message }) => `${path.join(".")}: ${message}`);
};

test.each([60, 604_800])("%i seconds are accepted for users, devices and tokens", (seconds) => {
  const targets = ["user:ann", "dev_06bq4ghm31tz5d2ns8y7k9w0ac", "device:dev_06bq4ghm31tz5d2ns8y7k9w0ac", "token:abc"];
  expect(problemsOf({ escalate_after: seconds, targets, send_at: "2030-01-31T09:00:00Z" })).toEqual([]);
});

test.each([59, 604_801, 60.5, -1, 0, "3600", null, [], {}, 1e300])(
  "%j is refused, with what is accepted",
  (seconds) => {
    expect(problemsOf({ escalate_after: seconds })).toEqual([
      "escalate_after: must be a whole number of seconds from 60 to 604800 (7 days)",
    ]);
  },
);

test.each([
  [{ targets: ["user:ann", "topic:news"] }, "needs targets `user:`, `device:` or `token:` alone"],
  [{ targets: ["all"] }, "needs targets `user:`, `device:` or `token:` alone"],
  [{ targets: ["metadata:plan=pro"] }, "needs targets `user:`, `device:` or `token:` alone"],
  [{ targets: undefined, recipients: { upload: "user" } }, "cannot be combined with `recipients`: send to `targets`"],
  [{ rollout: { per_minute: 60_000 } }, "cannot be combined with `rollout`, which has no one start"],
  [
    { send_at: "2030-01-31T09:00:00", time_zone: "device", past: "now" },
    'cannot be combined with `time_zone: "device"`, which has no one start',
  ],
  [{ silent: true }, "cannot be combined with `silent`: nothing is shown that could be opened"],
])("%j is refused", (change, why) => {
  expect(problemsOf(change)).toEqual([`escalate_after: ${why}`]);
});

test("a push type shows nothing that could be opened, and a template has no targets", () => {
  expect(problemsOf({ title: undefined, push_type: "widgets" }).join()).toContain("escalate_after");
  expect(TemplateContent.safeParse({ title: "Hello", escalate_after: 60 }).success).toBe(false);
});
