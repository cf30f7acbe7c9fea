import type { Author, HeldReason, NotificationContent } from "@herald/contracts";
import type { Filter, UpdateFilter } from "mongodb";
import { type Expansions, firstPart, tookPlace, type withExpanded } from "../domain/expansions.ts";
import { emptyTally, type Failures, finalStatus, type Tally } from "../domain/notification-counts.ts";
import type { Outcomes } from "../domain/rollout.ts";
import type { Claim } from "./delivery-document.ts";
import {
  type End,
  escalationOf,
  type Holder,
  type NotificationDocument,
  type NotificationState,
  type Paused,
  type Stop,
} from "./notification-document.ts";

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

/** The step of a notification that begins: `scheduled` until its first expansion, or `accepted`. */
export const firstStep = ({ list: [first] }: Expansions, now: Date) =>
  first && first.at > now
    ? ({ step: "scheduled", status: "scheduled", nextAt: first.at } as const)
    : ({ step: "accepted", status: "accepted" } as const);

/** The same, or `approval` for one that is proposed. */
export const stepOfNew = ({ approval }: Pick<NotificationState, "approval">, expansions: Expansions, now: Date) =>
  approval
    ? ({ step: "approval", status: "proposed", nextAt: approval.expiresAt } as const)
    : firstStep(expansions, now);

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

/** A notification that registry expands. The number of its expansion is in each filter: a late message of an earlier one changes nothing. */
type Expanding = Pick<NotificationState, "changedAt"> & { readonly expansions: Expansions };

/**
 * `scheduled` → `accepted`: the next expansion begins. Of several callers one makes it, and none after a change of the notification's time.
 * `list`: the expansions as they are planned now.
 */
export const toAccepted = (
  { expansions, changedAt, paused }: Expanding & Pick<NotificationState, "paused">,
  { list, rollout }: Pick<Expansions, "list" | "rollout">,
): Transition => {
  const { n } = expansions;
  const { held: _, ...progress } = rollout ?? {};
  // Of the replicas that judge a rollout, one pauses it or begins its next part, and none overwrites a lower speed.
  const unchanged = {
    paused: paused ? some : absent,
    "expansions.rollout.perMinute": expansions.rollout?.perMinute ?? absent,
    "expansions.rollout.before": expansions.rollout?.before ?? absent,
  };
  return {
    filter: { step: "scheduled", "expansions.n": n, changedAt: changedAt ?? absent, ...(rollout && unchanged) },
    update: {
      $set: {
        step: "accepted",
        "expansions.list": list,
        ...(rollout && { "expansions.rollout": { ...progress, begun: Math.max(rollout.begun, n + 1) } }),
        ...(n === 0 && { status: "accepted" }),
      },
      $unset: { nextAt: "" },
    },
  };
};

/** `scheduled`, its time has come, and it may not begin: it is looked at again at `nextAt`. `held`: why a rollout does not. */
export const toRecheck = (
  { expansions: { n }, changedAt }: Expanding,
  nextAt: Date,
  held?: HeldReason,
): Transition => ({
  filter: { step: "scheduled", "expansions.n": n, changedAt: changedAt ?? absent },
  update: { $set: { nextAt, ...(held && { "expansions.rollout.held": held }) } },
});

/** What decides when a notification is sent. */
export type Timing = {
  readonly content: NotificationContent;
  readonly expiresAt: Date;
  readonly expansions: Expansions;
};

/** `scheduled` → `scheduled` at another time, unless it has begun or was changed since it was read. */
export const toRescheduled = (
  { changedAt }: Pick<NotificationState, "changedAt">,
  { content, expiresAt, expansions }: Timing,
  now: Date,
) => {
  const sendAt = expansions.list[0]?.at ?? now;
  const set = { content: JSON.stringify(content), sendAt, expiresAt, expansions, nextAt: sendAt, changedAt: now };
  const transition: Transition = {
    filter: { step: "scheduled", expanded: absent, changedAt: changedAt ?? absent },
    update: { $set: set },
  };
  return { nextAt: sendAt, transition };
};

/** How a proposal was decided: by whom, when and why; `by` is absent: it expired. */
export type Decision = { readonly at: Date; readonly by?: Author; readonly reason?: string | undefined };

const decided = (status: "approved" | "rejected" | "expired", { at, by, reason }: Decision) => ({
  "approval.status": status,
  "approval.at": at,
  ...(by && { "approval.by": by }),
  ...(reason !== undefined && { "approval.reason": reason }),
});

/** `approval` → `scheduled` or `accepted`. Without `by`: an upload that needs no approval after all. */
export const toApproved = (
  { approval }: Pick<NotificationState, "approval">,
  { expiresAt, expansions, ...decision }: Omit<Timing, "content"> & Decision,
): Transition => {
  const first = firstStep(expansions, decision.at);
  const isLater = first.step === "scheduled";
  const unset = { ...(!isLater && { nextAt: "" as const }), ...(!decision.by && { approval: "" as const }) };
  return {
    filter: { step: "approval", "approval.devices": approval?.devices ?? absent },
    update: {
      $set: {
        ...{ ...first, expansions, expiresAt },
        ...(isLater && { sendAt: first.nextAt }),
        ...(decision.by && decided("approved", decision)),
      },
      ...(Object.keys(unset).length > 0 && { $unset: unset }),
    },
  };
};

/** What its end also sets. */
export const refused = (decision: Decision) => decided(decision.by ? "rejected" : "expired", decision);

/** `approval`: its audience is known, or is larger than it was. Unless somebody saw it change before. */
export const toEstimated = ({ approval }: Pick<NotificationState, "approval">, devices: number): Transition => ({
  filter: { step: "approval", "approval.devices": approval?.devices ?? absent },
  update: { $set: { "approval.devices": devices } },
});

/** A change to a step that clients see as `sending`, unless they see `cancelled`. Of the two transitions one applies. */
const shownAsSending = (filter: Filter<NotificationDocument>, update: UpdateFilter<NotificationDocument>) =>
  [
    {
      filter: { ...filter, status: { $ne: "cancelled" } },
      update: { ...update, $set: { ...update.$set, status: "sending" } },
    },
    { filter: { ...filter, status: "cancelled" }, update },
  ] as [Transition, Transition];

/** `accepted` → `expanding`, after expansion `n` was commanded. */
export const toExpanding = (n: number, now: Date) =>
  shownAsSending({ step: "accepted", "expansions.n": n }, { $set: { step: "expanding", nextAt: checkAfter(now) } });

type Done = ReturnType<typeof withExpanded>;

/**
 * Registry has partitioned all devices of the expansion, or those that a lost one had left out: to `scheduled` for the next one, or to
 * `delivering` after the last one, a stop or a loss. `next`: what the notification is then, in the first case.
 */
export const toExpanded = (
  known: NotificationState & Expanding,
  { list, expanded, past, ...done }: Done,
  now: Date,
) => {
  const { step, stop } = known;
  const { n, rollout } = known.expansions;
  const isLost = step === "delivering";
  // After a loss, those that took place before a stop take place again.
  const nextAt = isLost || (stop && !tookPlace(known.expansions, n + 1)) ? undefined : done.next?.at;
  const progress = { list, n: n + 1, ...(rollout && past && { rollout: { ...rollout, past } }) };
  const transition: Transition = {
    filter: {
      "expansions.n": n,
      "stop.kind": stop?.kind ?? absent,
      ...(isLost ? { step, "expanded.lost": some } : { step: { $in: ["accepted", "expanding"] } }),
    },
    update: {
      $set: {
        "expansions.list": list,
        ...(past && { "expansions.rollout.past": past }),
        expanded,
        ...(nextAt
          ? { step: "scheduled", "expansions.n": n + 1, nextAt }
          : { step: "delivering", nextAt: checkAfter(now) }),
        ...(stop?.kind !== "cancelled" && { status: "sending" }),
        // It may begin later than planned.
        ...escalationOf(known.escalation?.after, now),
      },
    },
  };
  const next = { step: "scheduled", expansions: { ...known.expansions, ...progress }, expanded } as const;
  return { next: nextAt && { ...next, nextAt }, transition };
};

/** `scheduled` → `delivering`: expansions that did not take place yet do not. `cancelled`: because of a cancel. */
export const toLastExpansion = ({ expansions: { n, list } }: Expanding, now: Date, cancelled: boolean): Transition => ({
  filter: { step: "scheduled", "expansions.n": n },
  update: {
    $set: {
      step: "delivering",
      "expansions.list": list.filter(({ devices }) => devices !== undefined),
      nextAt: checkAfter(now),
      ...(cancelled && { status: "cancelled" as const, stop: { kind: "cancelled" as const, at: now } }),
    },
    ...(cancelled && { $unset: { paused: "" as const } }),
  },
});

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

/**
 * `expanding` → `accepted`, because the messages of its expansion were lost. `delivering` or, of a rollout that is held, `scheduled` →
 * `accepted`, because batches of any were: each takes place again, from the first one. Only what the caller knows is repeated.
 */
export const toAcceptedAgain = (
  { step, expanded, expansions }: NotificationState & Expanding,
  now: Date,
): Transition => {
  const { n, rollout } = expansions;
  const isAll = step !== "expanding";
  const first = rollout ? { expansions: { ...firstPart(rollout, now), againAt: now } } : { "expansions.n": 0 };
  const again = rollout && isAll ? {} : { "expansions.againAt": now };
  return {
    filter: { step, "expansions.n": n, "expanded.at": expanded?.at ?? absent },
    update: {
      $set: { step: "accepted", ...again, ...(isAll && first) },
      $unset: { nextAt: "" },
    },
  };
};

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
  update: { $set: { status: "cancelled", stop: { kind: "cancelled", at: now } }, $unset: { paused: "" } },
});

/**
 * Pauses a notification in any step but `sending`: the step stays. Not while a stop is counted. `judged`: a rollout stops by itself before
 * its next part, unless that has begun or it was resumed since it was judged.
 */
export const paused = (paused: Paused, judged?: Expansions): Transition => ({
  filter: {
    step: { $exists: true, $ne: "sending" },
    stop: absent,
    paused: absent,
    ...(judged && {
      step: "scheduled",
      "expansions.n": judged.n,
      "expansions.rollout.before": judged.rollout?.before ?? absent,
    }),
  },
  update: { $set: { paused } },
});

/** `before`: the outcomes of a rollout so far, which do not stop it again. */
export const resumed = (before?: Outcomes): Transition => ({
  filter: { step: some, paused: some },
  update: { $unset: { paused: "" }, ...(before && { $set: { "expansions.rollout.before": before } }) },
});

/** A lower speed of a rollout, unless it was changed since it was read. The part that is planned already keeps its time. */
export const slowedDown = (content: NotificationContent, perMinute: number, known: Expansions): Transition => ({
  filter: { step: some, stop: absent, "expansions.rollout.perMinute": known.rollout?.perMinute ?? absent },
  update: { $set: { "expansions.rollout.perMinute": perMinute, content: JSON.stringify(content) } },
});

/** Records that the send can never succeed. Its expansion, if it is still to come, counts its devices. */
export const abandoned = (now: Date): [Transition, Transition] => {
  const stop = { kind: "abandoned", at: now } as const;
  return [
    {
      filter: { step: "scheduled", stop: absent },
      update: { $set: { step: "accepted", status: "accepted", stop }, $unset: { nextAt: "", paused: "" } },
    },
    { filter: { step: { $in: [...begun] }, stop: absent }, update: { $set: { stop }, $unset: { paused: "" } } },
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
      // In the same step it may have come to its next expansion.
      ...(known.expansions && { "expansions.n": known.expansions.n }),
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
