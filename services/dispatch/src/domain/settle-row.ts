import { BadTokenReason, type DeliveryReason, type DeviceId, pushTokenHash, type Recipient } from "@herald/contracts";
import type { Failures, Tally } from "./notification-counts.ts";
import { isTokenRefusal, type Outcome, refusalText } from "./outcome.ts";
import { createResultTable, type DeviceResult } from "./result-table.ts";
import { maxPushAttempts, nextAttemptAt } from "./retry.ts";

/** A device of a batch, with its history from earlier rows. */
export type Sendable = Recipient & {
  /** Attempts that ended before this row. */
  readonly attempts: number;
  /** Tries that used no attempt, because the provider certainly did not process them; absent: none. */
  readonly unprocessed?: number | undefined;
  /** An earlier attempt may have reached the device. */
  readonly repeat: boolean;
  /** The provider's Retry-After for this device: no push before this time, in milliseconds since 1970. */
  readonly notBefore?: number | undefined;
  /** No push before this time, because of a failed try, in milliseconds since 1970. New settings remove it. */
  readonly retryAt?: number | undefined;
  /** Quiet hours delay it until then, in milliseconds since 1970; removed once it is evaluated again. */
  readonly delayed?: number | undefined;
};

/** Until when a device itself must wait, in milliseconds since 1970; 0: it need not. */
export const ownWait = ({ notBefore = 0, retryAt = 0 }: Sendable): number => Math.max(notBefore, retryAt);

/** Whether quiet hours that delayed a device have ended, so that kind and cap are evaluated again. */
export const isDelayOver = ({ delayed }: Sendable, now: Date): boolean =>
  delayed !== undefined && delayed <= now.getTime();

/** Why nothing was sent to the devices without an outcome. */
export type PushStop =
  /** `paused`: its provider is; `held`: the notification, its project or all sends are. */
  | { readonly kind: "cancelled" | "abandoned" | "not-configured" | "paused" | "held" }
  /** `during`: what the devices waited for when the notification expired. */
  | { readonly kind: "expired"; readonly during?: "settings" | "held" | undefined };

/** Why devices get nothing, such as `moved`: they were deleted or changed their user while they waited. */
export type Skips = ReadonlyMap<DeviceId, DeliveryReason>;

export const noneSkipped: Skips = new Map();

export const allSkipped = (devices: readonly Pick<Sendable, "id">[], reason: DeliveryReason): Skips =>
  new Map(devices.map(({ id }) => [id, reason]));

/**
 * Until when a device must wait because its server is blocked. `providerReason`: the server's failure, if it fails. `refused`: the push was
 * sent, and the provider refused the credential, which a second push must confirm.
 */
export type Blocked = {
  readonly until: Date;
  readonly providerReason?: string | undefined;
  readonly refused?: true | undefined;
};

/** The devices of a row that continue in a child. */
export type Waiting = {
  readonly devices: readonly Sendable[];
  /** When the child is due. */
  readonly dueAt: Date;
  /** Nothing is sent before this time. Some devices may have to wait longer: each is checked before its push. */
  readonly notBefore: Date;
  /** The child waits for new provider settings, not for a time. */
  readonly paused: boolean;
  /** The child waits until its notification, its project or all sends are resumed. */
  readonly held?: true;
};

export type Settlement = {
  readonly results: readonly DeviceResult[];
  /** For each device the index of its result. */
  readonly resultOf: Uint8Array;
  readonly tally: Tally;
  readonly failures: Failures;
  /** Devices to retire: their tokens are dead, or wrong for ever. `at`: since when. `reason`: absent for the usual one, `unregistered`. */
  readonly unregistered: {
    readonly deviceId: DeviceId;
    readonly tokenHash: string;
    readonly at: Date;
    readonly reason?: BadTokenReason;
  }[];
  /** By device: the provider's id of its message, if the provider returned one. */
  readonly providerIds: readonly (string | undefined)[];
  readonly waiting?: Waiting;
};

export type BatchRun = {
  readonly devices: readonly Sendable[];
  /** By device. Undefined when no push was sent: `blocked`, `skips` or `stop` says why. */
  readonly outcomes: readonly (Outcome | undefined)[];
  /** Devices whose server is blocked: it sent Retry-After, or it keeps failing. */
  readonly blocked?: ReadonlyMap<number, Blocked> | undefined;
  readonly stop?: PushStop | undefined;
  /** When a push is tried although the provider is paused. */
  readonly nextTrialAt?: Date | undefined;
  /** Devices to which nothing was sent. */
  readonly skips?: Skips | undefined;
  /** When sending began. A refusal without its own time gets this time. */
  readonly startedAt: Date;
  readonly now: Date;
  readonly expiresAt: Date;
  readonly cancelled: boolean;
  /** Attempts are not counted: only the notification's end ends them. */
  readonly untilExpiry?: boolean | undefined;
  /** Set by the spike guard: no refusal retires a device. */
  readonly keepDevices: boolean;
  /** Whether a device was asked for a receipt; absent: none was. */
  readonly asked?: ((device: Sendable) => boolean) | undefined;
  /** In [0, 1). */
  readonly random: number;
};

/** While a provider is paused, its batches are checked at this interval. New settings make them due at once. */
export const pauseCheckMs = 300_000;
/** A trial that was due is over by then. */
const trialCheckMs = 1_000;

/** When a batch of a paused provider is checked again: at the next trial, which one of them makes. */
export const pauseCheckAt = (now: Date, trialAt: Date | undefined): number => {
  const at = now.getTime();
  return Math.min(at + pauseCheckMs, Math.max(at + trialCheckMs, trialAt?.getTime() ?? Number.POSITIVE_INFINITY));
};

/**
 * Why a device waits: for its next attempt, for new provider settings, until its server is no longer blocked, quiet hours end, or sends are
 * resumed.
 */
type Wait = {
  readonly index: number;
  readonly device: Sendable;
  readonly for: "attempt" | "settings" | "blocked" | "quiet-hours" | "held";
  readonly providerReason?: string | undefined;
  /** The provider certainly did not process the push. */
  readonly unprocessed?: true | undefined;
  /** When the device is tried again at the earliest, in milliseconds since 1970. Absent: it waits for no time. */
  readonly notBefore?: number | undefined;
  readonly refused?: true | undefined;
};
type DeviceSettlement = DeviceResult | Omit<Wait, "index">;

/** Decides for every device of a row whether it gets a final state or continues in a child row. */
export const settleRow = (run: BatchRun): Settlement => {
  const table = createResultTable(run.devices.length);
  const unregistered: Settlement["unregistered"] = [];
  const providerIds: (string | undefined)[] = [];
  const waits: Wait[] = [];
  for (const [index, device] of run.devices.entries()) {
    const outcome = run.outcomes[index];
    const settlement = outcome ? classify(run, device, outcome) : notSent(run, index, device);
    if ("for" in settlement) {
      waits.push({ ...settlement, device: withoutPastDelay(run, settlement.device), index });
      continue;
    }
    table.put(index, settlement);
    if (outcome?.kind === "accepted" && outcome.providerId !== undefined) providerIds[index] = outcome.providerId;
    const retired = outcome && outcome.kind !== "accepted" && retiredBy(run, device, outcome);
    if (retired) unregistered.push({ deviceId: device.id, tokenHash: pushTokenHash(device.token), ...retired });
  }
  const continuing = waits.filter((wait) => inTime(run, wait));
  const waiting = plan(run, continuing);
  const deferrable = new Set(waiting ? continuing : []);
  for (const wait of waits) table.put(wait.index, deferrable.has(wait) ? deferred(wait) : expiredResult(run, wait));
  const { results, resultOf } = table;
  return { results, resultOf, ...table.sums(), unregistered, providerIds, ...(waiting ? { waiting } : {}) };
};

/** For a retry, no rule is evaluated again. */
const withoutPastDelay = ({ now }: BatchRun, device: Sendable): Sendable => {
  if (!isDelayOver(device, now)) return device;
  const { delayed: _, ...rest } = device;
  return rest;
};

/** The result of nearly every device, allocated once. */
const atOnce: DeviceResult = Object.freeze({ status: "accepted", attempts: 1, possibleRepeat: false });
const askedAtOnce: DeviceResult = Object.freeze({ ...atOnce, asked: true });

/** The name of the result that all devices of a row have if it is a usual one, and the provider named no message. */
export const usualResult = ({ results, providerIds }: Pick<Settlement, "results" | "providerIds">) => {
  const [result] = results;
  if (results.length !== 1 || providerIds.length > 0) return undefined;
  if (result === atOnce) return "accepted";
  return result === askedAtOnce ? "asked" : undefined;
};

const classify = (run: BatchRun, device: Sendable, outcome: Outcome): DeviceSettlement => {
  const attempts = device.attempts + 1;
  if (outcome.kind === "accepted") {
    const asked = run.asked?.(device) === true;
    if (attempts === 1 && !device.repeat) return asked ? askedAtOnce : atOnce;
    return { status: "accepted", attempts, possibleRepeat: device.repeat, ...(asked && { asked }) };
  }
  const { providerReason } = outcome;
  const failed = (reason: DeliveryReason): DeviceResult => ({
    status: "failed",
    reason,
    providerReason,
    // What Herald refused itself was not sent.
    attempts: outcome.kind === "rejected" && outcome.notSent ? device.attempts : attempts,
    possibleRepeat: device.repeat || outcome.kind === "unknown",
  });
  switch (outcome.kind) {
    case "unregistered":
      return failed(retiredBy(run, device, outcome) ? "unregistered" : "unregistered-kept");
    case "rejected":
      // A recipient without a value that a text shows: nothing is wrong with the device or the text.
      if (outcome.reason === "value-missing")
        return { status: "skipped", reason: outcome.reason, attempts: device.attempts, possibleRepeat: device.repeat };
      return failed(outcome.reason);
    case "misconfigured":
      // Not an attempt: the provider refused the credential without checking the device.
      return { device, for: "settings", providerReason: refusalText(outcome) };
    case "deferred":
    case "unknown": {
      const { retryAfterMs, unprocessed } = outcome.kind === "deferred" ? outcome : noAnswer;
      if (attempts >= maxPushAttempts && !run.untilExpiry && !unprocessed) return failed("attempts-exhausted");
      const { now, expiresAt, random } = run;
      const { notBefore: _, ...rest } = device;
      const tried = unprocessed
        ? { ...rest, unprocessed: (device.unprocessed ?? 0) + 1 }
        : { ...rest, attempts, repeat: device.repeat || outcome.kind === "unknown" };
      // Without a time before the end, it waits until the end.
      const retryAt = (nextAttemptAt({ ...tried, now, retryAfterMs, expiresAt, random }) ?? expiresAt).getTime();
      const asked = retryAfterMs === undefined ? {} : { notBefore: now.getTime() + retryAfterMs };
      return {
        device: { ...tried, ...asked, retryAt },
        for: "attempt",
        providerReason,
        unprocessed,
        notBefore: retryAt,
      };
    }
  }
};

const noAnswer: { readonly retryAfterMs?: undefined; readonly unprocessed?: undefined } = {};

/** Since when, and why, an outcome retires its device. Undefined: it does not. */
const retiredBy = (run: BatchRun, device: Sendable, outcome: Outcome) => {
  // FCM does not say whether it means the device or the activity's token.
  const certain = outcome.kind === "rejected" && outcome.notSent;
  if ((run.keepDevices && !certain) || device.liveToken !== undefined || !isTokenRefusal(outcome)) return undefined;
  const at = (outcome.kind === "unregistered" ? outcome.at : undefined) ?? run.startedAt;
  // A refusal from before the device's last registration does not apply to its current token.
  if (at.getTime() <= device.tokenAt) return undefined;
  const { data: reason } = BadTokenReason.safeParse(outcome.kind === "rejected" && outcome.reason);
  return { at, ...(reason && { reason }) };
};

const notSent = (run: BatchRun, index: number, device: Sendable): DeviceSettlement => {
  const reason = run.skips?.get(device.id);
  if (reason !== undefined)
    return { status: "skipped", reason, attempts: device.attempts, possibleRepeat: device.repeat };
  const blocked = run.blocked?.get(index);
  // A stop that is final for the rest of the batch is final for this device, too.
  const waits = run.stop === undefined || run.stop.kind === "paused" || run.stop.kind === "held";
  if (blocked && waits && device.delayed === blocked.until.getTime())
    return { device, for: "quiet-hours", notBefore: device.delayed };
  if (blocked && waits) return { ...blocked, device, for: "blocked", notBefore: blocked.until.getTime() };
  return stopped(run.stop ?? { kind: "abandoned" }, device);
};

const stopped = (stop: PushStop, device: Sendable): DeviceSettlement => {
  const { attempts, repeat } = device;
  const untried = { attempts, possibleRepeat: repeat };
  switch (stop.kind) {
    case "cancelled":
      return { status: "cancelled", reason: "cancelled", ...untried };
    case "expired":
      return { status: "expired", reason: reasonOfExpiry(stop.during), ...untried };
    case "abandoned":
      return { status: "failed", reason: "internal", ...untried };
    case "not-configured":
      return { status: "failed", reason: "provider-not-configured", ...untried };
    case "paused":
      return { device, for: "settings" };
    case "held":
      return { device, for: "held" };
  }
};

/** Whether a device's wait ends before the notification does. */
const inTime = ({ now, expiresAt, cancelled }: BatchRun, { notBefore = 0 }: Wait): boolean =>
  !cancelled && Math.max(now.getTime(), notBefore) < expiresAt.getTime();

/** The waiting devices are due when the first of them is: each is checked again before its push. */
const plan = ({ now, expiresAt, nextTrialAt }: BatchRun, waits: readonly Wait[]): Waiting | undefined => {
  if (waits.length === 0) return undefined;
  const at = now.getTime();
  const ends = waits.flatMap(({ notBefore }) => (notBefore === undefined ? [] : Math.max(at, notBefore)));
  const paused = waits.some((wait) => wait.for === "settings");
  const held = waits.some((wait) => wait.for === "held");
  const notBefore = new Date(ends.length === 0 ? at : Math.min(...ends));
  const check = new Date(Math.min(Math.max(pauseCheckAt(now, nextTrialAt), notBefore.getTime()), expiresAt.getTime()));
  const devices = waits.map(({ device }) => device);
  // The others are held, too, when they are due: one row waits for all.
  if (held) return { devices, dueAt: expiresAt, notBefore: new Date(at), paused, held };
  return { devices, dueAt: paused ? check : notBefore, notBefore, paused };
};

const deferred = ({ device, providerReason, unprocessed, for: what, refused }: Wait): DeviceResult => ({
  status: "deferred",
  providerReason,
  attempts: device.attempts,
  possibleRepeat: device.repeat,
  ...(what === "blocked" && !refused ? { blocked: true } : {}),
  ...(unprocessed && { unprocessed }),
  ...(what === "quiet-hours" ? { reason: what } : {}),
  ...(what === "held" ? { reason: "paused" } : {}),
});

const expiredResult = (run: BatchRun, wait: Wait): DeviceResult => ({
  ...deferred(wait),
  ...(run.cancelled
    ? { status: "cancelled", reason: "cancelled" }
    : wait.for === "quiet-hours"
      ? { status: "skipped", reason: wait.for }
      : { status: "expired", reason: reasonOfExpiry(wait.for) }),
});

/** By what the device waited for. */
const reasonOfExpiry = (what: Wait["for"] | undefined): DeliveryReason => {
  if (what === "settings") return "provider-misconfigured";
  return what === "held" ? "paused" : "expired";
};
