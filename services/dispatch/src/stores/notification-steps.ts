import type { NotificationContent } from "@herald/contracts";
import type { Filter, UpdateFilter } from "mongodb";
import { emptyTally, type Failures, finalStatus, type Tally } from "../domain/notification-counts.ts";
import type { Waves } from "../domain/waves.ts";
import type { Claim } from "./delivery-document.ts";
import type { End, Expanded, Holder, NotificationDocument, NotificationState, Stop } from "./notification-document.ts";

/**
 * The states of a notification, and every change from one to another: which documents it applies to, and what it changes. Each is one
 * update, so of two processes only one makes it. ARCHITECTURE.md has the diagram.
 */
export type Transition = {
  readonly filter: Filter<NotificationDocument>;
  readonly update: UpdateFilter<NotificationDocument>;
};

/** Most notifications end within this time; the sweep checks the others at this interval. */
const checkEveryMs = 60_000;

export const checkAfter = (now: Date): Date => new Date(now.getTime() + checkEveryMs);

const absent = { $exists: false } as const;
const some = { $exists: true } as const;

/** The step of a new notification: `scheduled` until its `send_at`, or `accepted`. */
export const firstStep = ({ sendAt }: { readonly sendAt?: string | Date | undefined }, now: Date) => {
  const at = sendAt === undefined ? undefined : new Date(sendAt);
  return at && at > now
    ? ({ step: "scheduled", status: "scheduled", nextAt: at } as const)
    : ({ step: "accepted", status: "accepted" } as const);
};

/** The step of a new small send, which the process that handles its message pushes now. Without devices it has ended. */
export const firstStepOfSmall = (batches: number, claim: Claim, now: Date) => {
  if (batches === 0) return ended(undefined, { at: now, tally: emptyTally, failures: {} });
  const holder: Holder = { ...claim, open: true };
  return { step: "sending", status: "sending", claim: holder, nextAt: checkAfter(now) } as const;
};

/** The state of a notification that ended. */
export const ended = (stop: Stop | undefined, end: End) => ({
  status: finalStatus(stop?.kind === "cancelled", end.tally),
  end,
});

/** The state of a notification that was cancelled before any of its devices was known. */
export const cancelledAtOnce = (now: Date) => {
  const stop = { kind: "cancelled", at: now } as const;
  return { stop, ...ended(stop, { at: now, tally: emptyTally, failures: {} }) };
};

/** `scheduled` → `accepted`, when its `send_at` has passed. */
export const toAccepted = (now: Date): Transition => ({
  filter: { step: "scheduled", sendAt: { $lte: now }, waves: absent },
  update: { $set: { step: "accepted", status: "accepted" }, $unset: { nextAt: "" } },
});

/** What decides when a notification is sent. */
export type Timing = {
  readonly content: NotificationContent;
  readonly sendAt: Date;
  readonly expiresAt: Date;
  readonly waves: Waves | undefined;
};

/** `scheduled` → `scheduled` at another time, unless it has begun or was changed since it was read. */
export const toRescheduled = (
  { changedAt }: Pick<NotificationState, "changedAt">,
  { content, expiresAt, waves, ...given }: Timing,
  now: Date,
) => {
  const sendAt = waves?.list[0]?.at ?? given.sendAt;
  const set = { content: JSON.stringify(content), sendAt, expiresAt, nextAt: sendAt, changedAt: now };
  const transition: Transition = {
    filter: { step: "scheduled", expanded: absent, changedAt: changedAt ?? absent },
    update: { $set: { ...set, ...(waves && { waves }) }, ...(!waves && { $unset: { waves: "" } }) },
  };
  return { nextAt: sendAt, transition };
};

/** A change to a step that clients see as `sending`, unless they see `cancelled`. Of the two transitions one applies. */
const shownAsSending = (filter: Filter<NotificationDocument>, update: UpdateFilter<NotificationDocument>) =>
  [
    {
      filter: { ...filter, status: { $ne: "cancelled" } },
      update: { ...update, $set: { ...update.$set, status: "sending" } },
    },
    { filter: { ...filter, status: "cancelled" }, update },
  ] as [Transition, Transition];

/** `accepted` → `expanding`, after its expansion was commanded. */
export const toExpanding = (now: Date) =>
  shownAsSending({ step: "accepted" }, { $set: { step: "expanding", nextAt: checkAfter(now) } });

/** To `delivering`: registry has partitioned all devices, or those that a lost expansion had left out. */
export const toDelivering = (expanded: Expanded, now: Date) =>
  shownAsSending(
    {
      step: { $in: ["accepted", "expanding", "delivering"] },
      $or: [{ expanded: absent }, { "expanded.lost": some }],
    },
    { $set: { step: "delivering", expanded, nextAt: checkAfter(now) } },
  );

/** To `delivering`, because its expansion was dead-lettered. */
export const toDeliveringPart = (now: Date) =>
  shownAsSending(
    { step: { $in: ["scheduled", "accepted", "expanding"] } },
    {
      $set: {
        step: "delivering",
        expanded: { batches: 0, devices: 0, unmatched: [], lost: now },
        nextAt: checkAfter(now),
      },
    },
  );

/** `delivering` → `expanding`, because batches were lost. Only the expansion that the caller knows is repeated. */
export const toExpandingAgain = (known: Expanded | undefined, now: Date): Transition => ({
  filter: { step: "delivering", expanded: some, "expanded.at": known?.at ?? absent },
  update: { $set: { step: "expanding", nextAt: checkAfter(now) }, $unset: { expanded: "" } },
});

/** `sending` → `delivering`, after its rows moved to `deliveries`. */
export const toDeliveringMoved: Transition = {
  filter: { step: "sending", "claim.open": false },
  update: { $set: { step: "delivering" }, $unset: { claim: "", rows: "", named: "" } },
};

/** The steps in which devices may have been sent to. */
const begun = ["accepted", "expanding", "delivering", "sending"] as const;

/** Cancels a notification in any step after `scheduled`, once. Pushes already sent still have to be counted. */
export const cancelled = (now: Date): Transition => ({
  filter: { step: { $in: [...begun] }, status: { $ne: "cancelled" } },
  update: { $set: { status: "cancelled", stop: { kind: "cancelled", at: now } } },
});

/** Records that the send can never succeed. Its expansion, if it is still to come, counts its devices. */
export const abandoned = (now: Date): [Transition, Transition] => {
  const stop = { kind: "abandoned", at: now } as const;
  return [
    {
      filter: { step: "scheduled", stop: absent },
      update: { $set: { step: "accepted", status: "accepted", stop }, $unset: { nextAt: "" } },
    },
    { filter: { step: { $in: [...begun] }, stop: absent }, update: { $set: { stop } } },
  ];
};

/** Takes a completed notification out of the index of statuses. */
const unlisted = ({ status }: ReturnType<typeof ended>): Record<string, ""> =>
  status === "completed" ? { byStatus: "" } : {};

/** The final counts, and the time of the end. */
export type Counted = { readonly tally: Tally; readonly failures: Failures; readonly now: Date };

/** To the end, from the step in which the caller read the notification. `stop`: why it ends. */
export const toEnd = (known: NotificationState, { tally, failures, now }: Counted, stop: Stop | undefined) => {
  const state = ended(stop, { at: now, tally, failures });
  const transition: Transition = {
    filter: {
      step: known.step ?? absent,
      "stop.kind": known.stop?.kind ?? absent,
      // In the same step it may have come to its next wave.
      ...(known.waves && { "waves.n": known.waves.n }),
    },
    update: { $set: { ...state, ...(stop && { stop }) }, $unset: { step: "", nextAt: "", ...unlisted(state) } },
  };
  return { state, transition };
};

/** `sending` → the end, by the process that sends it. `set` and `unset`: what changes in its rows. */
export const toEndOfSmall = (state: ReturnType<typeof ended>, set: object, unset: object): Transition => ({
  filter: { "claim.open": true, stop: absent },
  update: { $set: { ...state, ...set }, $unset: { step: "", nextAt: "", claim: "", ...unlisted(state), ...unset } },
});
