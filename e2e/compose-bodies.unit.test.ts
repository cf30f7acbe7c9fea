import { NewNotification } from "@herald/contracts";
import fc from "fast-check";
import { expect, test } from "vitest";
import { type Draft, emptyDraft } from "../packages/console/src/pages/compose/draft.ts";
import { dryRunOf, notificationOf, testOf } from "../packages/console/src/pages/compose/notification-of.ts";

/** Values of the form, among them ones that the API refuses, and JSON whose fields go with others of the form. */
const text = fc.constantFrom("", "Hello", "{{ n }}");
const more = fc.subarray([
  ...[{ ttl: 60 }, { send_at: "2030-01-31T09:00:00" }, { time_zone: "device" }, { past: "skip" }, { kind: "offers" }],
  ...[{ targets: ["all"] }, { recipients: [{ target: "user:ann", variables: { n: 1 } }] }, { variables: { n: 2 } }],
  ...[{ silent: true }, { push_type: "voip" }, { priority: "normal" }, { data: { order: "17" } }, { ios: { aps: {} } }],
  { localizations: { de: { title: "Hallo" } } },
] as object[]);
const drafts: fc.Arbitrary<Draft> = fc.record({
  ...{
    title: text,
    body: text,
    link_to: fc.constantFrom("", "/x"),
    image: fc.constantFrom("", "https://example.com/i.png"),
  },
  ...{
    urgency: fc.constantFrom("", "passive"),
    relevance: fc.constantFrom("", "0,5"),
    thread: fc.constantFrom("", "a"),
  },
  ...{
    android_channel: fc.constantFrom("", "b"),
    icon: fc.constant(""),
    receipts: fc.constantFrom("", "10"),
    escalate_after: fc.constantFrom("", "3600"),
    kind: fc.constantFrom("", "offers"),
  },
  buttons: fc.constantFrom([], [{ id: "a", title: "A", link_to: "", opens: false }]),
  from: fc.constantFrom("targets" as const, "file" as const),
  targets: fc.constantFrom([], ["all"], ["user:ann", "topic:news"]),
  fileOf: fc.constantFrom("user" as const, "device" as const),
  template: fc.constantFrom("", "invoice"),
  variables: fc.constantFrom([], [{ name: "n", type: "number", fallback: "", text: "3" }]),
  sendAt: fc.constantFrom("", "2030-01-31T09:00"),
  past: fc.constantFrom("" as const, "skip" as const, "tomorrow" as const),
  rollout: fc.constantFrom(emptyDraft.rollout, { ...emptyDraft.rollout, per_minute: "600" }),
  more: more.map((fields) => (fields.length === 0 ? "" : JSON.stringify(Object.assign({}, ...fields)))),
});
const first = { target: "user:ann", variables: { n: "1" } };
const accepts = (body: unknown) => NewNotification.safeParse(body).success;

test("whatever the form can express: what the dry run accepts is sent, and what is sent can be tried out first", () => {
  let accepted = 0;
  fc.assert(
    fc.property(drafts, (draft) => {
      const recipient = draft.from === "file" ? first : undefined;
      const send = notificationOf(draft, recipient);
      const dryRun = dryRunOf(draft, recipient);
      const isSent = accepts(send);
      const isWritten =
        (send.title ?? send.body ?? send.template ?? send.push_type) !== undefined || send.silent === true;
      // Without a text the dry run counts devices alone, and the form sends nothing.
      if (isWritten && dryRun) expect(accepts({ ...dryRun, dry_run: true })).toBe(isSent);
      if (isSent) expect(accepts(testOf(draft, "user:bea", recipient))).toBe(true);
      if (isSent) accepted++;
    }),
    { numRuns: 3_000 },
  );
  expect(accepted).toBeGreaterThan(300);
  expect(dryRunOf(emptyDraft)).toBeUndefined();
});
