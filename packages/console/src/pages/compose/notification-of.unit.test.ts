import { expect, test } from "vitest";
import { emptyDraft, isEmpty, withTexts } from "./draft.ts";
import { draftOf, dryRunOf, moreOf, moreProblem, notificationOf, testOf } from "./notification-of.ts";

test("a draft becomes a notification with the fields that were filled in", () => {
  const draft = { ...emptyDraft, title: "Hello", link_to: " /x ", targets: ["all"], more: '{ "priority": "normal" }' };
  expect(notificationOf(draft)).toEqual({ priority: "normal", title: "Hello", link_to: "/x", targets: ["all"] });
});

test("receipts are typed in percent, and a button without a link or that keeps the app closed has none", () => {
  const button = { id: " track ", title: "Track", link_to: " /orders/42 ", opens: true };
  const draft = {
    ...emptyDraft,
    receipts: "12,5",
    buttons: [button, { ...button, id: "b", link_to: "" }, { ...button, id: "later", opens: false }],
  };
  expect(notificationOf(draft)).toEqual({
    receipts: 0.125,
    buttons: [
      { id: "track", title: "Track", link_to: "/orders/42" },
      { id: "b", title: "Track" },
      { id: "later", title: "Track", opens: false },
    ],
  });
  expect(notificationOf({ ...emptyDraft, receipts: "0" })).toEqual({ receipts: 0 });
});

test("presentation has its names in the API, and a relevance with a comma is a number", () => {
  const draft = {
    ...emptyDraft,
    ...{
      urgency: "passive",
      relevance: "0,5",
      thread: " order-42 ",
      android_channel: "orders",
      icon: "https://example.com/i.png",
    },
  };
  expect(notificationOf(draft)).toEqual({
    ...{ urgency: "passive", relevance: 0.5, thread: "order-42", android_channel: "orders" },
    ...{ icon: "https://example.com/i.png" },
  });
  expect(notificationOf({ ...emptyDraft, relevance: "0" })).toEqual({ relevance: 0 });
});

test("a local time becomes a moment with its offset", () => {
  const sendAt = "2030-01-31T09:00";
  const { send_at } = notificationOf({ ...emptyDraft, sendAt, targets: ["all"] });
  expect(send_at).toBe(new Date(sendAt).toISOString());
});

test.each(["[]", "null", "1", "{", '"x"'])("%s is no JSON object", (more) => {
  expect(moreOf({ ...emptyDraft, more })).toBeUndefined();
});

test("only an untouched draft is empty", () => {
  expect(isEmpty(emptyDraft)).toBe(true);
  expect(isEmpty({ ...emptyDraft, targets: ["all"] })).toBe(false);
});

test("the local time of devices has no offset", () => {
  const draft = { ...emptyDraft, sendAt: "2030-01-31T09:00", past: "tomorrow" as const, targets: ["all"] };
  expect(notificationOf(draft)).toMatchObject({
    send_at: "2030-01-31T09:00:00",
    time_zone: "device",
    past: "tomorrow",
  });
});

test("the test push has no part of a time, and the dry run all of it", () => {
  const draft = { ...emptyDraft, sendAt: "2030-01-31T09:00", past: "tomorrow" as const, body: "x", targets: ["all"] };
  expect(testOf(draft, "user:ann")).toEqual({ body: "x", targets: ["user:ann"] });
  expect(dryRunOf(draft)).toEqual(notificationOf(draft));
});

test("a time of the form leaves none of another time in the JSON", () => {
  const more = '{ "time_zone": "Europe/Berlin", "send_at": "2030-01-01T00:00:00", "ttl": 60 }';
  const sendAt = "2030-01-31T09:00";
  expect(notificationOf({ ...emptyDraft, more })).toMatchObject({ time_zone: "Europe/Berlin", ttl: 60 });
  expect(notificationOf({ ...emptyDraft, more, sendAt })).toEqual({ ttl: 60, send_at: new Date(sendAt).toISOString() });
});

test("a rollout is sent in parts of its own, but not with a file, a local time or the test push", () => {
  const rollout = {
    ...{ "canary/share": "1", "canary/wait": " 20m ", per_minute: 600 },
    ...{ "stop_if/failed": "2,5", "stop_if/unregistered": true },
  };
  const draft = { ...emptyDraft, body: "x", targets: ["all"], rollout };
  const whole = {
    canary: { share: 0.01, wait: "20m" },
    per_minute: 600,
    stop_if: { failed: 0.025, unregistered: true },
  };
  expect(notificationOf(draft)).toEqual({ body: "x", targets: ["all"], rollout: whole });
  const failed = { ...emptyDraft.rollout, "stop_if/failed": "5", "stop_if/unregistered": false };
  expect(notificationOf({ ...draft, rollout: failed }).rollout).toEqual({ stop_if: { failed: 0.05 } });
  expect(testOf(draft, "user:ann")).toEqual({ body: "x", targets: ["user:ann"] });
  for (const other of [{ from: "file" }, { sendAt: "2030-01-31T09:00", past: "skip" }] as const)
    expect(notificationOf({ ...draft, ...other })).not.toHaveProperty("rollout");
});

test("targets of the form replace targets and recipients of the JSON", () => {
  const more = '{ "recipients": [{ "target": "user:ann", "variables": { "n": 1 } }] }';
  const inline = { ...emptyDraft, title: "{{ n }}", more };
  expect(dryRunOf(inline)).toEqual(notificationOf(inline));
  expect(testOf(inline, "user:bea")).toMatchObject({ recipients: [{ target: "user:bea", variables: { n: 1 } }] });
  expect(notificationOf({ ...inline, targets: ["all"] })).toEqual({ title: "{{ n }}", targets: ["all"] });
});

test("a file stands for its first recipient until Herald reads it, with the types that the template declares", () => {
  const first = { target: "user:ann", variables: { n: "12.5", name: "Ann" } };
  const draft = { ...emptyDraft, title: "{{ n }}", from: "file" as const, targets: ["all"] };
  expect(notificationOf(draft, first)).toEqual({
    ...{ title: "{{ n }}", variables: { n: "", name: "" }, recipients: { upload: "user" } },
  });
  expect(dryRunOf(draft)).toBeUndefined();
  const variables = [{ name: "n", type: "number", fallback: "", text: "" }];
  const templated = { ...draft, template: "invoice", variables };
  expect(dryRunOf(templated, first)).toMatchObject({
    ...{ template: "invoice", variables: {} },
    recipients: [{ target: "user:ann", variables: { n: 12.5, name: "Ann" } }],
  });
  expect(testOf(templated, "token:t", first)).toMatchObject({ recipients: [{ target: "token:t" }] });
});

test.each([
  ['{ "dry_run": true }', "Leave out dry_run"],
  ['{ "recipients": { "upload": "user" } }', "choose “A file”"],
  ["[]", "Write a JSON object"],
])("%s is not sent, and the form says what to do", (more, words) => {
  expect(moreProblem({ ...emptyDraft, more })).toContain(words);
});

test("a notification that was sent comes back as a draft that sends all that it had", () => {
  const sent = {
    ...{ title: "Sale", body: "Now", link_to: "/sale", kind: "offers", urgency: "passive", relevance: 0.5 },
    ...{ thread: "sale", android_channel: "offers", icon: "https://example.com/i.png", receipts: 0.07 },
    buttons: [{ id: "a", title: "Open" }],
    rollout: { canary: { share: 0.07, wait: "1h" }, per_minute: 60, stop_if: { failed: 0.05, unregistered: true } },
    ...{
      targets: ["all"],
      escalate_after: 60,
      ttl: 60,
      labels: { campaign: "spring" },
      data: { a: "b" },
      silent: false,
    },
  };
  const progress = { phase: "done", released: 10, outcomes: 10, failed: 3 };
  const shown = { ...sent, rollout: { ...sent.rollout, ...progress } };
  const ended = { ...shown, id: "ntf_1", status: "completed", counts: {}, skips: {}, send_at: "2020-01-01T00:00:00Z" };
  expect(notificationOf(draftOf(ended as never))).toEqual(sent);
  const destructive = { ...sent, buttons: [{ id: "a", title: "Delete", destructive: true }] };
  expect(notificationOf(draftOf(destructive as never))).toEqual(destructive);
});

test("only what was entered changes a variable, also one with a name that every object has", () => {
  const variable = { type: "string", fallback: "", text: "" };
  const [first, second] = [
    { ...variable, name: "constructor", text: "A" },
    { ...variable, name: "order" },
  ];
  expect(withTexts([first, second], { order: "42" })).toEqual([first, { ...second, text: "42" }]);
  expect(withTexts([first, second], { constructor: "B" })).toEqual([{ ...first, text: "B" }, second]);
});
