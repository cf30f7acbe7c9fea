import { expect, test } from "vitest";
import { longestRetryMs } from "../src/device.ts";
import { responseOf } from "../src/response.ts";
import { type DeviceReport, emptyState, reportAgeMs, withReport } from "../src/state.ts";

const report = (number: number, at = 0): DeviceReport => ({
  kind: "open",
  notification: `ntf_${number}`,
  project: "prj_1",
  token: `t${number}`,
  at,
});

test("keeps the newest hundred reports of thirty days, and each once", () => {
  const numbers = Array.from({ length: 120 }, (_, index) => index + 1);
  const many = numbers.reduce((state, number) => withReport(state, report(number)), emptyState);
  expect(many.reports.map(({ notification }) => notification)).toEqual(numbers.slice(20).map((one) => `ntf_${one}`));
  expect(withReport(many, report(120, 5))).toBe(many);
  const late = withReport(withReport(emptyState, report(1)), report(2, reportAgeMs));
  expect(late.reports).toEqual([report(2, reportAgeMs)]);
});

test("waits longer with each failure, an hour at most", () => {
  expect([1, 2, 3, 50].map(longestRetryMs)).toEqual([30_000, 60_000, 120_000, 3_600_000]);
});

test("reads what a person did with a notification", () => {
  const payload = {
    notification_id: "ntf_1",
    link_to: "/orders",
    buttons: [
      { id: "track", title: "Track", link_to: "/orders/42" },
      { id: "later", title: "Later", opens: false },
    ],
  };
  const after = (actionIdentifier: string) =>
    responseOf({ actionIdentifier, notification: { request: { trigger: { payload }, content: {} } } });
  const push = payload;
  expect(after("expo.modules.notifications.actions.DEFAULT")).toEqual({ push, did: "opened", link: "/orders" });
  expect(after("track")).toEqual({ push, did: "opened", button: "track", link: "/orders/42" });
  expect(after("later")).toEqual({ push, did: "opened", button: "later" });
  expect(after("com.apple.UNNotificationDismissActionIdentifier")).toEqual({ push, did: "dismissed" });
  const local = { actionIdentifier: "x", notification: { request: { trigger: null, content: { data: { a: 1 } } } } };
  expect(responseOf(local)).toBeUndefined();
  expect(responseOf(null)).toBeUndefined();
});
