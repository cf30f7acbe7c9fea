import { setTimeout as sleep } from "node:timers/promises";
import { openBucket } from "@herald/bus";
import {
  type ActivityChannelRecord,
  type ActivityKey,
  ActivityRecord,
  activityKey,
  activityLimits,
  type ProjectId,
  type Recipient,
} from "@herald/contracts";
import { LRUCache, withTimeout } from "@herald/kit";
import { keptMsOf } from "@herald/rules";
import type { Deps } from "../deps.ts";
import { channelsDueAt, leftChannel, prefixesOf } from "../domain/activity.ts";
import { pauseOf } from "../project-rules.ts";
import type { ProviderChannels } from "../providers/provider-client.ts";
import type { DueMessages } from "./follow-up.ts";

/** How long a start, or an app that asks, waits for a channel. Afterwards the device has a token. */
const waitMs = 3_000;
const pollMs = 200;
const listMs = 2_000;
/** When an ask without an answer is looked at: by then its request has ended. */
const lookAfterMs = 60_000;
const retryMs = 60_000;
/** A project is deleted without waiting longer for Apple. */
const removeMs = 10_000;

type ChannelDevice = Pick<Recipient, "app" | "environment">;

export type ActivityChannels = ReturnType<typeof createActivityChannels>;

type ActivityChannelsDeps = Pick<Deps, "bus" | "log" | "now" | "pool" | "rules"> & {
  readonly dueMessages: DueMessages;
};

/**
 * The broadcast channels of Live Activities. An ask is stored before Apple gets it, and there is one for each app and environment: so a
 * crash leaves at most one channel at Apple that no record names.
 */
export const createActivityChannels = ({ bus, pool, rules, dueMessages, now, log }: ActivityChannelsDeps) => {
  const bucket = openBucket(bus, "push_activities", ActivityRecord);
  const making = new Map<string, Promise<string | undefined>>();
  /** The asks of other processes that this one has waited for in vain. */
  const unanswered = new LRUCache<string, number>({ max: 10_000 });

  const read = async (key: ActivityKey) => (await bucket.get(activityKey(key)))?.value;

  /** Changes a channel by compare-and-set; null removes it. Resolves to false if `change` gives nothing, or the record is gone. */
  const write = async (
    key: ActivityKey,
    name: string,
    change: (
      known: ActivityChannelRecord | undefined,
      record: ActivityRecord,
    ) => ActivityChannelRecord | null | undefined,
  ): Promise<boolean> => {
    for (;;) {
      const entry = await bucket.get(activityKey(key));
      const changed = entry && change(entry.value.channels?.[name], entry.value);
      if (!entry || changed === undefined) return false;
      const { [name]: _, ...others } = entry.value.channels ?? {};
      const record = { ...entry.value, channels: changed ? { ...others, [name]: changed } : others };
      if (await bucket.update(activityKey(key), record, entry.revision, { ttlMs: keptMsOf(record, now()) }))
        return true;
    }
  };

  /** Undefined while the provider cannot be asked. */
  const clientOf = async (projectId: ProjectId): Promise<ProviderChannels | undefined> => {
    const lookup = await pool.lookup(projectId, "apns");
    return lookup.kind === "ready" && !lookup.channel.refused() ? lookup.channel.client.channels : undefined;
  };

  const listBefore = async (client: ProviderChannels, name: string): Promise<string | undefined> => {
    const listing = client.ask("list", name);
    const listed = (await withTimeout(listMs, listing)) ? await listing : undefined;
    return listed?.kind === "done" ? prefixesOf(listed.ids) : undefined;
  };

  const make = async (key: ActivityKey, record: ActivityRecord, name: string, client: ProviderChannels) => {
    const before = await listBefore(client, name);
    const askedAt = now().getTime();
    const asked = { askedAt, ...(before !== undefined && { before }) };
    const isFirst = await write(key, name, (known, { end }) => (known || end ? undefined : asked));
    if (!isFirst) return undefined;
    await dueMessages.schedule({ ...key, purpose: "look" }, new Date(askedAt + lookAfterMs));
    await dueMessages.schedule({ ...key, purpose: "clean" }, new Date(record.endsAt + activityLimits.dismissMs));
    const answer = await client.ask("make", name);
    const id = answer.kind === "done" ? answer.ids[0] : undefined;
    const after = {
      done: { askedAt, id },
      refused: { askedAt, problem: answer.kind === "done" ? "" : answer.reason },
      "not-done": null,
      unknown: { ...asked, problem: answer.kind === "done" ? "" : answer.reason },
    }[answer.kind];
    if (answer.kind !== "done")
      log.warn({ ...key, name, ...answer }, "an activity has no channel: its devices have tokens");
    const isStored = await write(key, name, (known) => (known?.askedAt === askedAt ? after : undefined));
    // Its project was deleted meanwhile.
    if (id !== undefined && !isStored) await client.ask("delete", name, id);
    return isStored ? id : undefined;
  };

  /** The channel of an activity: made, or asked for by another process. */
  const find = async (key: ActivityKey, name: string, client: ProviderChannels): Promise<string | undefined> => {
    const deadline = performance.now() + waitMs;
    const place = `${activityKey(key)}/${name}`;
    for (;;) {
      const record = await read(key);
      if (!record || record.end) return undefined;
      const known = record.channels?.[name];
      if (known?.problem !== undefined) return undefined;
      if (known?.id !== undefined) return known.id;
      if (!known) {
        const id = await make(key, record, name, client);
        if (id !== undefined || performance.now() > deadline) return id;
      } else if (unanswered.get(place) === known.askedAt) return undefined;
      else if (performance.now() > deadline) {
        unanswered.set(place, known.askedAt);
        return undefined;
      }
      await sleep(pollMs);
    }
  };

  const findOnce = (key: ActivityKey, name: string, client: ProviderChannels): Promise<string | undefined> => {
    const place = `${activityKey(key)}/${name}`;
    const finding = making.get(place) ?? find(key, name, client).finally(() => making.delete(place));
    making.set(place, finding);
    return finding;
  };

  /** Deletes a channel at Apple. Resolves to whether nothing is left to do. */
  const remove = async (client: ProviderChannels | undefined, name: string, id: string): Promise<boolean> => {
    const answer = await client?.ask("delete", name, id);
    if (answer?.kind === "refused" && answer.reason !== "ChannelNotRegistered")
      log.warn({ name, reason: answer.reason }, "a channel cannot be deleted, and counts towards the app's 10,000");
    return answer?.kind === "done" || answer?.kind === "refused";
  };

  /** What may be done for the channels of a record now. Resolves to whether something must be tried again. */
  const clean = async (key: ActivityKey, record: ActivityRecord, name: string, known: ActivityChannelRecord) => {
    const at = now().getTime();
    const { id, left, askedAt, before, problem } = known;
    const client = await clientOf(key.projectId);
    if (id !== undefined) {
      if (at < channelsDueAt(record)) return false;
      if (!(await remove(client, name, id))) return true;
      await write(key, name, (one) => one && { ...one, id: undefined });
    } else if (left && left.at <= at) {
      if (!(await remove(client, name, left.id))) return true;
      await write(key, name, (one) => one && { ...one, left: undefined });
    } else if (
      askedAt + lookAfterMs <= at &&
      (before !== undefined || problem === undefined) &&
      at < channelsDueAt(record)
    ) {
      const listed = await client?.ask("list", name);
      const found = listed?.kind === "done" ? leftChannel(record, known, listed.ids, at) : undefined;
      log.warn(
        { ...key, name, deleteAt: found && new Date(found.at).toISOString() },
        "Apple's answer about a channel was lost: if it made one, it counts towards the app's 10,000",
      );
      await write(key, name, (one) =>
        one?.askedAt === askedAt && one.id === undefined
          ? { askedAt, problem: problem ?? "no answer", ...(found && { left: found }) }
          : undefined,
      );
      if (found) await dueMessages.schedule({ ...key, purpose: "left" }, new Date(found.at));
    }
    return false;
  };

  return {
    read,
    write,

    /**
     * The ids of the channels that devices can follow, by the name of their app and environment; made if there is none. None on any failure:
     * then the devices have tokens.
     */
    of: async (key: ActivityKey, devices: readonly ChannelDevice[]): Promise<ReadonlyMap<string, string>> => {
      const found = new Map<string, string>();
      const finding = async () => {
        if (rules.loading || pauseOf(rules, key.projectId)) return;
        if ((await read(key))?.via === undefined) return;
        const client = await clientOf(key.projectId);
        if (!client) return;
        const names = new Set(devices.flatMap((device) => client.nameOf(device) ?? []));
        const each = [...names].map(async (name) => [name, await findOnce(key, name, client)] as const);
        for (const [name, id] of await Promise.all(each)) if (id !== undefined) found.set(name, id);
      };
      const done = finding().catch((err: unknown) => log.warn({ ...key, err }, "no channel can be asked for"));
      // What is made later is for later starts.
      await withTimeout(waitMs, done);
      return new Map(found);
    },

    /** Deletes what no device can need any more, and looks at asks without an answer. Schedules what comes next. */
    clean: async (key: ActivityKey, record: ActivityRecord): Promise<void> => {
      const results = await Promise.allSettled(
        Object.entries(record.channels ?? {}).map(([name, known]) => clean(key, record, name, known)),
      );
      for (const result of results)
        if (result.status === "rejected") log.warn({ ...key, err: result.reason }, "a channel cannot be cleaned up");
      const again = results.some((result) => result.status === "rejected" || result.value);
      // An end before its time: the schedule of the ask was for `endsAt`.
      const endsEarly = record.end && Object.values(record.channels ?? {}).some(({ id }) => id !== undefined);
      const dueAt = channelsDueAt(record);
      if (!again && !(endsEarly && dueAt > now().getTime())) return;
      await dueMessages.schedule({ ...key, purpose: "clean" }, new Date(again ? now().getTime() + retryMs : dueAt));
    },

    /** Deletes the channels and the records of a project, as far as Apple answers in time. */
    removeProject: async (projectId: ProjectId): Promise<void> => {
      const removeOne = async (key: string) => {
        const client = await clientOf(projectId);
        for (const [name, { id }] of Object.entries((await bucket.get(key))?.value.channels ?? {}))
          if (id !== undefined && !(await remove(client, name, id)))
            log.warn({ projectId, name }, "a channel of a deleted project is left at Apple");
      };
      const keys = await bucket.keys(`${projectId}.*`);
      await withTimeout(removeMs, Promise.allSettled(keys.map(removeOne)));
      await Promise.all(keys.map((key) => bucket.delete(key)));
    },
  };
};
