import { expect, test } from "vitest";
import { SendNotification } from "./send-notification.ts";

const problemsOf = (fields: object): string[] => {
  const notification = { title: "Hello", targets: ["all"], ...fields };
  const { error } = SendNotification.safeParse({ notification });
  return (error?.issues ?? []).map(({ path }) => path.join("."));
};

test.each([
  { urgency: "passive", relevance: 0 },
  { urgency: "critical", relevance: 1 },
  { relevance: 0.123, thread: "x".repeat(128), android_channel: "Breaking news", icon: "https://example.com/i.png" },
])("%j is accepted", (fields) => expect(problemsOf(fields)).toEqual([]));

test.each<[string, unknown]>([
  ["urgency", "high"],
  ["urgency", null],
  ["relevance", -0.1],
  ["relevance", 1.01],
  ["relevance", "0.5"],
  ["relevance", Number.NaN],
  ["thread", ""],
  ["thread", "x".repeat(129)],
  ["android_channel", ""],
  ["android_channel", ["orders"]],
  ["icon", "http://example.com/i.png"],
  ["icon", "/icon.png"],
  ["icon", `https://example.com/${"x".repeat(2048)}`],
])("%s: %j is refused with the field", (field, value) =>
  expect(problemsOf({ [field]: value })).toEqual([`notification.${field}`]),
);

test("a localization has words, not presentation", () => {
  expect(problemsOf({ localizations: { de: { urgency: "passive" } } })).toEqual(["notification.localizations.de"]);
});
