import { type DeliveryReason, type DeviceId, pushTokenHash, type Recipient } from "@herald/contracts";
import type { Failures, Tally } from "./counts.ts";
import type { Outcome } from "./outcome.ts";
import { createResultTable, type DeviceResult } from "./result-table.ts";
import { maxAttempts, minWaitMs, nextAttemptAt } from "./retry.ts";

/** A device of a batch with what happened to it in earlier rows. */
export type Sendable = Recipient & {
  /** Attempts that ended before this row. */
  readonly attempts: number;
  /** An earlier attempt may have reached the device. */
  readonly repeat: boolean;
  /** The provider asked for so long a wait for this device, in milliseconds since 1970. */
  readonly notBefore?: number | undefined;
};

/** Why the devices without an outcome were not sent to. */
export type Stop =
  | { readonly kind: "cancelled" | "abandoned" | "not-configured" | "paused" }
  /** `whilePaused`: it would have been sent in time, had the provider taken the credential. */
  | { readonly kind: "expired"; readonly whilePaused: boolean };

/** Until when a device must wait: its server must be left alone. `providerReason`: what that fails with, if it fails. */
export type Blocked = { readonly until: Date; readonly providerReason?: string | undefined };

/** The devices of a row that go on in a child. */
export type Waiting = {
  readonly devices: readonly Sendable[];
  /** When somebody must look at it again. */
  readonly dueAt: Date;
  /** Nothing is sent earlier. Some may have to wait longer: each is checked before it is sent. */
  readonly notBefore: Date;
  /** It waits for the provider's settings rather than for a moment. */
  readonly paused: boolean;
};

/** A device whose token the provider calls dead, and since when. */
export type Unregistered = { readonly deviceId: Recipient["id"]; readonly tokenHash: string; readonly at: Date };

export type Settlement = {
  readonly results: readonly DeviceResult[];
  /** For each device the index of its result. */
  readonly resultOf: Uint8Array;
  readonly tally: Tally;
  readonly failures: Failures;
  readonly unregistered: readonly Unregistered[];
  /** By device: the provider's name for its message, where it gave one. */
  readonly providerIds: readonly (string | undefined)[];
  readonly waiting?: Waiting;
};

export type BatchRun = {
  readonly devices: readonly Sendable[];
  /** By device; undefined where none was sent, and then `blocked` or `stop` says why. */
  readonly outcomes: readonly (Outcome | undefined)[];
  /** Devices whose server must be left alone: it asked for that, or it fails again and again. */
  readonly blocked?: ReadonlyMap<number, Blocked> | undefined;
  readonly stop?: Stop | undefined;
  /** Devices that changed hands, or are gone, while they waited: nothing was sent to them. */
  readonly moved?: ReadonlySet<DeviceId> | undefined;
  /** When sending began: what a verdict without a time of its own is dated. */
  readonly startedAt: Date;
  readonly now: Date;
  readonly expiresAt: Date;
  readonly cancelled: boolean;
  /** The spike guard: no verdict retires a device. */
  readonly keepDevices: boolean;
  /** In [0, 1). */
  readonly random: number;
};

/** While a provider is paused its batches are looked at so often; new settings wake them at once. */
export const pauseCheckMs = 300_000;

/** What a device waits for: its next attempt, the provider's settings, or the moment from which its server may be sent to. */
type Wait = {
  readonly index: number;
  readonly device: Sendable;
  readonly for: "attempt" | "settings" | "blocked";
  readonly providerReason?: string | undefined;
  /** Milliseconds since 1970: what Retry-After, or a blocked server, asks for. */
  readonly notBefore?: number | undefined;
};
type Decision = DeviceResult | Omit<Wait, "index">;

/** Decides for every device of a row: its final state, or that it goes on in a child. */
export const settleBatch = (run: BatchRun): Settlement => {
  const table = createResultTable(run.devices.length);
  const unregistered: Unregistered[] = [];
  const providerIds: (string | undefined)[] = [];
  const waits: Wait[] = [];
  for (const [index, device] of run.devices.entries()) {
    const outcome = run.outcomes[index];
    const decision = outcome ? judge(run, device, outcome) : notSent(run, index, device);
    if ("for" in decision) {
      waits.push({ ...decision, index });
      continue;
    }
    table.put(index, decision);
    if (outcome?.kind === "accepted" && outcome.providerId !== undefined) providerIds[index] = outcome.providerId;
    if (outcome?.kind === "unregistered" && decision.reason === "unregistered")
      unregistered.push({
        deviceId: device.id,
        tokenHash: pushTokenHash(device.token),
        at: outcome.at ?? run.startedAt,
      });
  }
  const going = waits.filter((wait) => inTime(run, wait));
  const waiting = plan(run, going);
  const goes = new Set(waiting ? going : []);
  for (const wait of waits) table.put(wait.index, goes.has(wait) ? deferred(wait) : tooLate(run, wait));
  const { results, resultOf } = table;
  return { results, resultOf, ...table.sums(), unregistered, providerIds, ...(waiting ? { waiting } : {}) };
};

/** The result of nearly every device, allocated once. */
const atOnce: DeviceResult = Object.freeze({ status: "accepted", attempts: 1, possibleRepeat: false });

const judge = (run: BatchRun, device: Sendable, outcome: Outcome): Decision => {
  const attempts = device.attempts + 1;
  if (outcome.kind === "accepted")
    return attempts === 1 && !device.repeat ? atOnce : { status: "accepted", attempts, possibleRepeat: device.repeat };
  const { providerReason } = outcome;
  const failed = (reason: DeliveryReason): DeviceResult => ({
    status: "failed",
    reason,
    providerReason,
    attempts,
    possibleRepeat: device.repeat || outcome.kind === "unknown",
  });
  switch (outcome.kind) {
    case "unregistered": {
      // A verdict about an earlier registration says nothing about the token that the device has now.
      const late = (outcome.at ?? run.startedAt).getTime() <= device.tokenAt;
      return failed(late || run.keepDevices ? "unregistered-kept" : "unregistered");
    }
    case "rejected":
      return failed(outcome.reason);
    case "misconfigured":
      // Not an attempt: the provider did not look at the device.
      return { device, for: "settings", providerReason };
    case "deferred":
    case "unknown": {
      if (attempts >= maxAttempts) return failed("attempts-exhausted");
      const asked = outcome.kind === "deferred" ? outcome.retryAfterMs : undefined;
      const notBefore = asked === undefined ? undefined : run.now.getTime() + asked;
      const repeat = device.repeat || outcome.kind === "unknown";
      const { notBefore: _, ...rest } = device;
      const next = { ...rest, attempts, repeat, ...(notBefore === undefined ? {} : { notBefore }) };
      return { device: next, for: "attempt", providerReason, notBefore };
    }
  }
};

const notSent = (run: BatchRun, index: number, device: Sendable): Decision => {
  if (run.moved?.has(device.id))
    return { status: "skipped", reason: "moved", attempts: device.attempts, possibleRepeat: device.repeat };
  const blocked = run.blocked?.get(index);
  // Whatever stopped the rest of the batch for good stops it too.
  if (blocked && (run.stop === undefined || run.stop.kind === "paused"))
    return { device, for: "blocked", providerReason: blocked.providerReason, notBefore: blocked.until.getTime() };
  return stopped(run.stop ?? { kind: "abandoned" }, device);
};

const stopped = (stop: Stop, device: Sendable): Decision => {
  const { attempts, repeat } = device;
  const untried = { attempts, possibleRepeat: repeat };
  switch (stop.kind) {
    case "cancelled":
      return { status: "cancelled", reason: "cancelled", ...untried };
    case "expired":
      return { status: "expired", reason: stop.whilePaused ? "provider-misconfigured" : "expired", ...untried };
    case "abandoned":
      return { status: "failed", reason: "internal", ...untried };
    case "not-configured":
      return { status: "failed", reason: "provider-not-configured", ...untried };
    case "paused":
      return { device, for: "settings" };
  }
};

/** Whether a device's wait ends before the notification does. */
const inTime = ({ now, expiresAt, cancelled }: BatchRun, { for: what, notBefore = 0 }: Wait): boolean => {
  const soonest = what === "attempt" ? now.getTime() + minWaitMs : now.getTime();
  return !cancelled && Math.max(soonest, notBefore) < expiresAt.getTime();
};

/** When those that wait go on: as soon as the first of them may, because each is looked at again. */
const plan = ({ now, expiresAt, random }: BatchRun, waits: readonly Wait[]): Waiting | undefined => {
  if (waits.length === 0) return undefined;
  const at = now.getTime();
  const ends: number[] = [];
  const again = waits.filter((wait) => wait.for === "attempt");
  if (again.length > 0) {
    const attempts = Math.max(...again.map(({ device }) => device.attempts));
    const retryAfterMs = Math.max(0, Math.min(...again.map(({ notBefore = at }) => notBefore)) - at);
    const next = nextAttemptAt({ attempts, now, retryAfterMs, expiresAt, random });
    if (next) ends.push(next.getTime());
  }
  for (const wait of waits) if (wait.for === "blocked") ends.push(Math.max(at, wait.notBefore ?? at));
  const paused = waits.some((wait) => wait.for === "settings");
  const notBefore = new Date(ends.length === 0 ? at : Math.min(...ends));
  const check = new Date(Math.min(Math.max(at + pauseCheckMs, notBefore.getTime()), expiresAt.getTime()));
  return { devices: waits.map(({ device }) => device), dueAt: paused ? check : notBefore, notBefore, paused };
};

const deferred = ({ device, providerReason, for: what }: Wait): DeviceResult => ({
  status: "deferred",
  providerReason,
  attempts: device.attempts,
  possibleRepeat: device.repeat,
  ...(what === "blocked" ? { blocked: true } : {}),
});

const tooLate = (run: BatchRun, wait: Wait): DeviceResult => ({
  ...deferred(wait),
  ...(run.cancelled
    ? { status: "cancelled", reason: "cancelled" }
    : { status: "expired", reason: wait.for === "settings" ? "provider-misconfigured" : "expired" }),
});
