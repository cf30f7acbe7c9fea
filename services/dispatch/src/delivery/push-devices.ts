import {
  type Lane,
  type NotificationContent,
  type Platform,
  type ProjectId,
  type Served,
  servingProvider,
} from "@herald/contracts";
import { createYieldIfDue, growingPause, retryWhileUnavailable } from "@herald/kit";
import { receiptAsker } from "@herald/payload";
import type { Deps } from "../deps.ts";
import { type Outcome, refusalText } from "../domain/outcome.ts";
import { type Blocked, ownWait, type PushStop, type Sendable, type Skips } from "../domain/settle-row.ts";
import { pauseOf } from "../project-rules.ts";
import { acceptsCredential } from "../providers/credential-doubt.ts";
import type { Channel } from "../providers/provider-pool.ts";
import type { RoutePermit } from "../providers/provider-routes.ts";
import type { Trial } from "../providers/trials.ts";
import { type CachedNotification, expiryOf, type NotificationCache } from "./notification-cache.ts";

/** Pushes per chunk. The notification's state is read before each chunk, so at most 50 pushes follow its cancel or expiry. */
export const chunkSize = 50;

/** How often the check before a chunk is retried after an unexpected error … */
const lookupRetries = { otherAttempts: 3 } as const;
/** … and how long the rest of the batch then waits. */
const waitMs = 5_000;

export type PushDeps = Pick<Deps, "pool" | "openTokens" | "now" | "rules"> & { readonly cache: NotificationCache };

type Batch = {
  readonly cached: CachedNotification;
  readonly devices: readonly Sendable[];
  readonly served: Served & { readonly lane: Lane; readonly expiresAt?: Date };
  /** Devices that must get no push. */
  readonly skips: Skips;
  /** Instead of the notification's own. */
  readonly content?: NotificationContent | undefined;
  readonly channels?: ReadonlyMap<string, string> | undefined;
  /** Adds the values of its recipient to a device. */
  readonly withValues?: ((device: Sendable) => Sendable) | undefined;
};

const same = (device: Sendable): Sendable => device;

/** Sends to the devices of a batch until a stop, and waits for every response. While the database is unavailable, it waits. */
export const pushDevices = async (
  { cache, pool, openTokens, now, rules }: PushDeps,
  { cached, devices, served, skips, content = cached.document.content, channels, withValues = same }: Batch,
  signal: AbortSignal,
) => {
  const { projectId, _id: notificationId } = cached.document;
  const expiresAt = expiryOf(cached, served);
  const { platform, lane } = served;
  const provider = servingProvider(served);
  const asksReceipt = content.receipts ? receiptAsker(content, { notificationId, platform }) : undefined;
  const outcomes = new Array<Outcome | undefined>(devices.length).fill(undefined);
  const blocked = new Map<number, Blocked>();
  /** By route, in milliseconds since 1970. */
  const turns = new Map<string, number>();
  const pending = createPendingPushes();
  const faults: unknown[] = [];
  let refused: Refused | undefined;
  let trial: Trial<Channel> | undefined;
  /** The device whose push is the trial, once it is sent. */
  let tried: number | undefined;
  let resumed: Channel | undefined;
  let nextTrialAt: Date | undefined;
  let stop: PushStop | undefined;
  let begun = false;
  let prepared: { channel: Channel; push: ReturnType<Channel["client"]["prepare"]> } | undefined;

  const answered = (channel: Channel, permit: RoutePermit, device: Sendable, index: number, outcome: Outcome) => {
    try {
      outcomes[index] = outcome;
      onOutcome(channel, permit, device, outcome, now);
      if (index === tried) {
        resumed = acceptsCredential(outcome) ? channel : undefined;
        // In this process, the credential may be in doubt since before another one stored the pause.
        if (channel.isSecond(permit)) channel.onSecondAnswer(outcome.kind === "misconfigured" ? undefined : outcome);
      } else if (outcome.kind === "misconfigured") onRefusal(channel, permit, index, outcome);
      else if (channel.isSecond(permit)) channel.onSecondAnswer(outcome);
      channel.release(1);
      pending.end();
    } catch (error) {
      pending.fail(error);
    }
  };
  /** Records that a request could not be made: an internal error, which does not count as a failure of the provider. */
  const failed = (channel: Channel, permit: RoutePermit, index: number, error: unknown) => {
    faults.push(error);
    outcomes[index] = { kind: "rejected", reason: "internal", providerReason: "", notSent: true };
    channel.routes.release(permit);
    if (channel.isSecond(permit)) channel.onSecondAnswer(undefined);
    channel.release(1);
    pending.end();
  };

  /** A refusal of the credential is confirmed when a second push gets it, too; until then the device waits. */
  const onRefusal = (
    channel: Channel,
    permit: RoutePermit,
    index: number,
    outcome: Extract<Outcome, { kind: "misconfigured" }>,
  ) => {
    const providerReason = refusalText(outcome);
    const refusal = channel.onRefusal(permit, providerReason);
    if (refusal.kind === "confirmed") {
      if (refusal.since) refused = { channel, providerReason, since: refusal.since };
      return;
    }
    const { until, isAttempt } = refusal;
    const retryAfterMs = Math.max(0, until.getTime() - now().getTime());
    outcomes[index] = isAttempt ? { kind: "deferred", limit: "device", retryAfterMs, providerReason } : undefined;
    if (!isAttempt) blocked.set(index, { until, providerReason, refused: true });
  };

  for (let from = 0; from < devices.length; from += chunkSize) {
    const to = Math.min(from + chunkSize, devices.length);
    const found = await findChannelOrWait(from, to);
    if (found === undefined) continue;
    if ("waits" in found) break;
    if ("stop" in found) {
      stop = found.stop;
      break;
    }
    const { channel } = found;
    if (prepared?.channel !== channel)
      prepared = {
        channel,
        push: channel.client.prepare({ projectId, notificationId, content, expiresAt, platform, lane, channels }),
      };
    const { push } = prepared;
    const openTokenOf = openTokens.signer({ projectId, notificationId, platform }, now());
    const yieldIfDue = cached.contentFor && createYieldIfDue();
    for (const index of found.open) {
      const device = devices[index];
      if (!device) continue;
      const turn = yieldIfDue?.();
      if (turn) await turn;
      const own = cached.contentFor?.(withValues(device));
      if (own && "failure" in own) {
        outcomes[index] = own.failure;
        channel.release(1);
        continue;
      }
      // Outcomes of other pushes may have blocked the device's server since the chunk was checked.
      const permit = channel.routes.acquire(channel.client.routeOf(device, platform), device.id);
      if (typeof permit === "number") {
        blockUntil(channel, device, index, permit);
        channel.release(1);
        continue;
      }
      pending.begin();
      begun = true;
      if (trial) tried = index;
      // One `then` and no `await`, because this runs for every push.
      try {
        push(device, openTokenOf(device.id, asksReceipt?.(device)), own?.content).then(
          (outcome) => answered(channel, permit, device, index, outcome),
          (error: unknown) => failed(channel, permit, index, error),
        );
      } catch (error) {
        failed(channel, permit, index, error);
      }
    }
    if (!trial) continue;
    stop = { kind: "paused" };
    break;
  }
  await pending.done();
  if (trial && !isTrial(tried === undefined ? undefined : outcomes[tried])) {
    pool.trials.giveBack(trial);
    nextTrialAt = now();
  }
  return {
    /** By device. Undefined when no push was sent: `blocked` or `stop` says why. */
    outcomes,
    stop,
    /** Devices that wait for their server, or for a time of their own. */
    blocked,
    /** Internal errors: the request could not be made. */
    faults,
    /** The credential was refused, and a second push says the same. */
    refused,
    /** The provider accepted a push that was tried while it was paused. */
    resumed,
    /** When a push is tried although the provider is paused, if the caller must know. */
    nextTrialAt,
    /** The version of the settings that were used last. Undefined: none were used. */
    version: prepared?.channel.version,
  };

  function blockUntil({ routes, client }: Channel, device: Sendable, index: number, until: number): void {
    const route = client.routeOf(device, platform);
    blocked.set(index, {
      until: new Date(turnOf(routes, route, device, until)),
      providerReason: routes.failureOf(route),
    });
  }

  /** When a blocked device is looked at again: those of one route at the same moment, which is another one than that of other rows. */
  function turnOf(routes: Channel["routes"], route: string, device: Sendable, until: number): number {
    if (until === ownWait(device)) return until;
    const turn = turns.get(route) ?? 0;
    if (turn >= until) return turn;
    const turnAt = routes.turnFrom(route, device.id, until);
    const next = turnAt < expiresAt.getTime() ? turnAt : until;
    turns.set(route, next);
    return next;
  }

  /**
   * Calls {@link findChannel}, but does not throw after the first push: the outcomes would be lost, and the redelivery would send
   * everything again. After an unexpected error, the remaining devices are deferred, as for a provider that throttles.
   */
  async function findChannelOrWait(from: number, to: number) {
    try {
      return await retryWhileUnavailable(() => findChannel(projectId, from, to), growingPause(signal), lookupRetries);
    } catch (error) {
      if (!begun || signal.aborted) throw error;
      faults.push(error);
      const until = new Date(now().getTime() + waitMs);
      for (const [index, { id }] of devices.entries())
        if (index >= from && !skips.has(id)) blocked.set(index, { until });
      return { waits: true } as const;
    }
  }

  /**
   * Reserves room in a channel for the devices of a chunk that need not wait, or returns why sending must stop. Undefined when all
   * devices must wait. Checks the state again after it waited for room.
   */
  async function findChannel(
    project: ProjectId,
    from: number,
    to: number,
  ): Promise<{ channel: Channel; open: readonly number[] } | { stop: PushStop } | undefined> {
    const state = await cache.stopped(cached);
    if (state) return { stop: { kind: state } };
    const lookup = await pool.lookup(project, provider);
    const held = isHeld();
    const during = lookup.kind === "paused" ? "settings" : undefined;
    if (now() >= expiresAt) return { stop: { kind: "expired", during: held ? "held" : during } };
    if (held) return { stop: { kind: "held" } };
    if (lookup.kind === "not-configured") return { stop: { kind: lookup.kind } };
    if (lookup.kind !== "paused") trial = undefined;
    else {
      // Taken before, if what followed failed.
      trial ??= await pool.trials.take(project, provider, lookup.nextTrialAt);
      nextTrialAt = trial?.nextAt ?? lookup.nextTrialAt;
      if (!trial) return { stop: { kind: "paused" } };
    }
    const { channel } = lookup.kind === "ready" ? lookup : (trial as Trial<Channel>);
    if (channel.refused()) return { stop: { kind: "paused" } };
    const all = openOf(channel, from, to);
    const open = trial ? all.slice(0, 1) : all;
    const count = open.length;
    if (count === 0) {
      if (trial) pool.trials.giveBack(trial);
      trial = undefined;
      return undefined;
    }
    await channel.reserve(count);
    const late = await changed(channel).catch((error: unknown) => {
      channel.release(count);
      throw error;
    });
    if (late) channel.release(count);
    return late ? { stop: late } : { channel, open };
  }

  /** The devices of a chunk that need not wait. */
  function openOf(channel: Channel, from: number, to: number): number[] {
    const open: number[] = [];
    const at = now().getTime();
    // Rarely true. If false, no device's server need be looked up.
    const anyBlocked = channel.routes.anyBlocked();
    for (let index = from; index < to; index++) {
      const device = devices[index];
      if (!device || skips.has(device.id)) continue;
      const until = anyBlocked || ownWait(device) > at ? blockedUntil(channel, device, platform, at) : undefined;
      if (until === undefined) open.push(index);
      else blockUntil(channel, device, index, until);
    }
    return open;
  }

  /** Of the state that `stopped` has just read. */
  function isHeld(): boolean {
    return cached.paused || (rules.pauses.size > 0 && pauseOf(rules, projectId) !== undefined);
  }

  async function changed(channel: Channel): Promise<PushStop | undefined> {
    const state = await cache.stopped(cached);
    if (state) return { kind: state };
    if (now() >= expiresAt) return { kind: "expired" };
    if (isHeld()) return { kind: "held" };
    return channel.refused() ? { kind: "paused" } : undefined;
  }
};

export type Pushed = Awaited<ReturnType<typeof pushDevices>>;

/** Counts the pushes in flight with one promise for all of them. `Promise.all` would need another promise for each push. */
const createPendingPushes = () => {
  let count = 0;
  let awaited = false;
  const ended = Promise.withResolvers<void>();
  // `done` rejects with the error. If `done` was never called, the batch has already failed.
  ended.promise.catch(() => {});
  return {
    begin: () => {
      count++;
    },
    end: () => {
      if (--count === 0 && awaited) ended.resolve();
    },
    /** An internal error fails the whole batch. */
    fail: ended.reject,
    done: (): Promise<void> => {
      awaited = true;
      if (count === 0) ended.resolve();
      return ended.promise;
    },
  };
};

/** Until when a device is blocked, in milliseconds since 1970: its server is blocked, or the device itself must wait. */
export const blockedUntil = (
  { routes, client }: Pick<Channel, "routes" | "client">,
  device: Sendable,
  platform: Platform,
  at: number,
): number | undefined => {
  const blocked = routes.blockedUntil(client.routeOf(device, platform), device.id);
  const own = ownWait(device);
  return own > at ? Math.max(own, blocked ?? 0) : blocked;
};

/** Whether a push that was tried for a paused provider says something. Who registers a device may make its push say nothing. */
const isTrial = (outcome: Outcome | undefined): boolean =>
  outcome !== undefined && !(outcome.kind === "rejected" && (outcome.notSent || outcome.tokenMismatch));

/** `since`: when the first of the two pushes was refused. */
type Refused = { readonly channel: Channel; readonly providerReason: string; readonly since: Date };

/** Reports an outcome to the health of its route. */
const onOutcome = (
  channel: Channel,
  permit: RoutePermit,
  { id }: Pick<Sendable, "id">,
  outcome: Outcome,
  now: () => Date,
): void => {
  const { routes } = channel;
  switch (outcome.kind) {
    case "misconfigured":
      routes.onSuccess(permit, id);
      return;
    case "deferred":
    case "unknown": {
      const { limit, elsewhere, providerReason, problem } = outcome;
      const retryAfterMs = outcome.kind === "deferred" ? outcome.retryAfterMs : undefined;
      if (elsewhere) routes.onSuccess(permit, id);
      else if (limit === undefined) routes.onFailure(permit, providerReason, problem);
      else if (limit === "device" || retryAfterMs === undefined) routes.onRefusal(permit, id, providerReason, limit);
      else {
        routes.onSuccess(permit, id);
        // Any other Retry-After concerns only this message.
        channel.throttle(permit.route.name, new Date(now().getTime() + retryAfterMs));
      }
      return;
    }
    case "rejected":
      if (outcome.notSent) {
        routes.release(permit);
        return;
      }
      if (outcome.tokenMismatch) {
        routes.onSuccess(permit, id);
        channel.onTokenMismatch(permit.route.name, outcome.providerReason);
        return;
      }
  }
  routes.onSuccess(permit, id);
  channel.prove(permit.route.name);
};
