import { expect, test } from "vitest";
import { emptyDraft, isEmpty, moreOf, notificationOf } from "./draft.ts";

test("a draft becomes a notification with the fields that were filled in", () => {
  const draft = { ...emptyDraft, title: "Hello", link: " /x ", targets: ["all"], more: '{ "priority": "normal" }' };
  expect(notificationOf(draft)).toEqual({ priority: "normal", title: "Hello", link_to: "/x", targets: ["all"] });
});

test("receipts are typed in percent, and a button without a link or that keeps the app closed has none", () => {
  const button = { id: " track ", title: "Track", link: " /orders/42 ", opens: true };
  const draft = {
    ...emptyDraft,
    receipts: "12,5",
    buttons: [button, { ...button, id: "b", link: "" }, { ...button, id: "later", opens: false }],
  };
  expect(notificationOf(draft)).toEqual({
    receipts: 0.125,
    buttons: [
      { id: "track", title: "Track", link_to: "/orders/42" },
      { id: "b", title: "Track" },
      { id: "later", title: "Track", opens: false },
    ],
    targets: [],
  });
  expect(notificationOf({ ...emptyDraft, receipts: "0" })).toEqual({ receipts: 0, targets: [] });
});

test("presentation has its names in the API, and a relevance with a comma is a number", () => {
  const draft = {
    ...emptyDraft,
    ...{
      urgency: "passive",
      relevance: "0,5",
      thread: " order-42 ",
      channel: "orders",
      icon: "https://example.com/i.png",
    },
  };
  expect(notificationOf(draft)).toEqual({
    ...{ urgency: "passive", relevance: 0.5, thread: "order-42", android_channel: "orders" },
    ...{ icon: "https://example.com/i.png", targets: [] },
  });
  expect(notificationOf({ ...emptyDraft, relevance: "0" })).toEqual({ relevance: 0, targets: [] });
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
