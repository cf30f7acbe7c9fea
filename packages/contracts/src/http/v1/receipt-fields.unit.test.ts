import { expect, test } from "vitest";
import { SendNotification } from "./send-notification.ts";

const problemsOf = (fields: object): string[] => {
  const notification = { title: "Hello", targets: ["all"], ...fields };
  const { error } = SendNotification.safeParse({ notification });
  return (error?.issues ?? []).map(({ path }) => path.slice(1).join("."));
};
const track = { id: "track", title: "Track" };

test.each([
  { receipts: true },
  { receipts: false },
  { receipts: 0 },
  { receipts: 0.25 },
  { receipts: 1, silent: true },
  { buttons: [track] },
  {
    buttons: [
      { ...track, link_to: "/orders/42", destructive: true },
      { id: "B-2", title: "x".repeat(40), opens: false },
    ],
  },
  { buttons: [track], localizations: { de: { buttons: { track: "Verfolgen" } }, fr: {} } },
  { buttons: [track], data: { Herald: "own" } },
])("%j is accepted", (fields) => expect(problemsOf(fields)).toEqual([]));

test.each<[string, object]>([
  ["receipts", { receipts: 1.01 }],
  ["receipts", { receipts: -0.1 }],
  ["receipts", { receipts: "true" }],
  ["receipts", { receipts: Number.NaN }],
  ["buttons", { buttons: [] }],
  ["buttons", { buttons: ["a", "b", "c", "d"].map((id) => ({ id, title: id })) }],
  ["buttons.0.id", { buttons: [{ id: "", title: "A" }] }],
  ["buttons.0.id", { buttons: [{ id: "a b", title: "A" }] }],
  ["buttons.0.id", { buttons: [{ id: "x".repeat(33), title: "A" }] }],
  ["buttons.1.id", { buttons: [track, track] }],
  ["buttons.0.title", { buttons: [{ id: "a", title: "x".repeat(41) }] }],
  ["buttons.0.title", { buttons: [{ id: "a" }] }],
  ["buttons.0.opens", { buttons: [{ ...track, opens: "no" }] }],
  ["buttons.0", { buttons: [{ ...track, icon: "https://example.com/i.png" }] }],
  ["buttons.0.link_to", { buttons: [{ ...track, opens: false, link_to: "/a" }] }],
  ["buttons.0.link_to", { buttons: [{ ...track, link_to: "javascript:alert(1)" }] }],
  ["buttons.0.link_to", { buttons: [{ ...track, link_to: "orders" }] }],
  ["buttons", { buttons: [track], category: "ORDER" }],
  ["buttons", { buttons: [track], silent: true }],
  ["localizations.de.buttons.track", { localizations: { de: { buttons: { track: "Verfolgen" } } } }],
  ["localizations.de.buttons.other", { buttons: [track], localizations: { de: { buttons: { other: "Anderes" } } } }],
  [
    "localizations.de.buttons.track",
    { buttons: [track], localizations: { de: { buttons: { track: "x".repeat(41) } } } },
  ],
  ["data.herald", { data: { herald: "{}" } }],
  ["android.data.herald", { android: { data: { herald: "{}" } } }],
])("%s is refused in %j", (path, fields) => expect(problemsOf(fields)).toEqual([path]));
