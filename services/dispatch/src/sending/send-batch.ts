import { type Platform, type ProjectId, providerOf } from "@herald/contracts";
import type { OpenTokens } from "@herald/payload";
import type { Outcome } from "../domain/outcome.ts";
import type { Sendable, Stop } from "../domain/settle-batch.ts";
import { keepTrying } from "./keep-trying.ts";
import type { NotificationWatch, Watched } from "./notification-watch.ts";
import type { Channel, ProviderPool } from "./provider-pool.ts";

/** The notification's state is looked at before each of these, so a cancel or the end of its life stops all but fifty. */
export const chunkSize = 50;

export type SendOptions = {
  readonly watch: NotificationWatch;
  readonly pool: ProviderPool;
  readonly openTokens: Pick<OpenTokens, "sign">;
  readonly now: () => Date;
};

export type Sent = {
  /** By device; undefined where none was sent, and then `stop` says why. */
  readonly outcomes: readonly (Outcome | undefined)[];
  readonly stop?: Stop;
  /** What the request itself could not be made for; Herald's own failure. */
  readonly faults: readonly unknown[];
  /** The credential was refused. */
  readonly refused?: { readonly channel: Channel; readonly providerReason: string };
};

/** Sends to the devices of a batch, until something stops it, and waits for every answer. Never throws while the database is away: it waits. */
export const sendBatch = async (
  { watch, pool, openTokens, now }: SendOptions,
  { watched, devices, platform }: { watched: Watched; devices: readonly Sendable[]; platform: Platform },
  signal: AbortSignal,
): Promise<Sent> => {
  const { projectId, _id: notificationId, content, expiresAt } = watched.document;
  const provider = providerOf[platform];
  const outcomes = new Array<Outcome | undefined>(devices.length).fill(undefined);
  const flights: Promise<void>[] = [];
  const faults: unknown[] = [];
  let refused: Sent["refused"];
  /** Refusals that may be about a single token, until it is known whether the credential is good. */
  const foreign: { index: number; providerReason: string }[] = [];
  let stop: Stop | undefined;
  let prepared: { channel: Channel; push: ReturnType<Channel["client"]["prepare"]> } | undefined;

  const heard = (channel: Channel, index: number, outcome: Outcome) => {
    outcomes[index] = outcome;
    if (outcome.kind === "misconfigured" && outcome.foreign)
      foreign.push({ index, providerReason: outcome.providerReason });
    else {
      const providerReason = heed(channel, outcome, now);
      if (providerReason !== undefined) refused ??= { channel, providerReason };
    }
    channel.landed(1);
  };
  /** Not what the provider said: this one request could not be made, and the others can. */
  const failed = (channel: Channel, index: number, error: unknown) => {
    faults.push(error);
    outcomes[index] = { kind: "rejected", reason: "internal", providerReason: "" };
    channel.landed(1);
  };
  /** With one continuation and nothing to await, because it runs for every push. */
  const fly = (channel: Channel, index: number, push: () => Promise<Outcome>): Promise<void> => {
    try {
      return push().then(
        (outcome) => heard(channel, index, outcome),
        (error: unknown) => failed(channel, index, error),
      );
    } catch (error) {
      failed(channel, index, error);
      return Promise.resolve();
    }
  };

  for (let from = 0; from < devices.length; from += chunkSize) {
    const chunk = devices.slice(from, from + chunkSize);
    const way = await keepTrying(() => findWay(projectId, chunk.length), signal);
    if ("stop" in way) {
      stop = way.stop;
      break;
    }
    const { channel } = way;
    if (prepared?.channel !== channel)
      prepared = { channel, push: channel.client.prepare({ projectId, notificationId, content, expiresAt }) };
    const { push } = prepared;
    const signedAt = now();
    for (const [offset, device] of chunk.entries()) {
      const send = () =>
        push(device, openTokens.sign({ projectId, notificationId, deviceId: device.id, platform }, signedAt));
      flights.push(fly(channel, from + offset, send));
    }
  }
  await Promise.all(flights);
  if (prepared) judgeForeign(prepared.channel);
  return { outcomes, faults, ...(stop ? { stop } : {}), ...(refused ? { refused } : {}) };

  /** A channel with room for a chunk, or why there is none. The last look is after the wait for room. */
  async function findWay(project: ProjectId, count: number): Promise<{ channel: Channel } | { stop: Stop }> {
    const state = await watch.stopped(watched);
    if (state) return { stop: { kind: state } };
    const lookup = await pool.lookup(project, provider);
    if (now() >= expiresAt) return { stop: { kind: "expired", whilePaused: lookup.kind === "paused" } };
    if (lookup.kind !== "ready") return { stop: { kind: lookup.kind } };
    const { channel } = lookup;
    const hindered = channel.hindrance();
    if (hindered) return { stop: hindered };
    await channel.room(count);
    // Until a credential is proven, room means that everything before has its answer.
    if (!channel.proven()) judgeForeign(channel);
    const late = await changed(channel).catch((error: unknown) => {
      channel.landed(count);
      throw error;
    });
    if (late) channel.landed(count);
    return late ? { stop: late } : { channel };
  }

  /** A credential that the provider took for others is good, so the token is a stranger's; else it is the credential. */
  function judgeForeign(channel: Channel): void {
    for (const { index, providerReason } of foreign.splice(0)) {
      if (channel.proven()) outcomes[index] = { kind: "rejected", reason: "topic-mismatch", providerReason };
      else {
        channel.refuse();
        refused ??= { channel, providerReason };
      }
    }
  }

  async function changed(channel: Channel): Promise<Stop | undefined> {
    const state = await watch.stopped(watched);
    if (state) return { kind: state };
    if (now() >= expiresAt) return { kind: "expired", whilePaused: false };
    return channel.hindrance();
  }
};

/** What an answer means for those that come after it. Returns the provider's words when it refused the credential. */
const heed = (channel: Channel, outcome: Outcome, now: () => Date): string | undefined => {
  switch (outcome.kind) {
    case "misconfigured":
      channel.refuse();
      return outcome.providerReason;
    case "deferred":
      if (outcome.retryAfterMs !== undefined) channel.silence(new Date(now().getTime() + outcome.retryAfterMs));
      return undefined;
    case "unknown":
      return undefined;
    case "rejected":
      if (!outcome.unsent) channel.prove();
      return undefined;
    default:
      channel.prove();
      return undefined;
  }
};
