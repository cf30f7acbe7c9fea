import { setTimeout as sleep } from "node:timers/promises";
import { openBucket } from "@herald/bus";
import {
  type ActivityChannelRecord,
  type ActivityKey,
  ActivityRecord,
  activityKey,
  type ProjectId,
  type Recipient,
} from "@herald/contracts";
import { withTimeout } from "@herald/kit";
import { keptMsOf } from "@herald/rules";
import type { Deps } from "../deps.ts";
import { cleanAtOf, leftChannel, lookAfterMs, lookWithinMs, prefixesOf } from "../domain/activity.ts";
import { pauseOf } from "../project-rules.ts";
import type { ProviderChannels } from "../providers/provider-client.ts";
import type { DueMessages } from "./follow-up.ts";

/** A start, or an app that asks, waits so long for a channel. Afterwards the device has a token. */
const waitMs = 3_000;
const pollMs = 50;
const listMs = 2_000;
const retryMs = 60_000;
/** Channels of an activity, because they make its record larger. Devices of more apps have tokens. */
const maxChannels = 8;
/** The deletion of a project asks Apple no longer, for the channels of so many activities at a time. */
const removeMs = 10_000;
const removedAtATime = 50;

export type ActivityChannels = ReturnType<typeof createActivityChannels>;

type ActivityChannelsDeps = Pick<Deps, "bus" | "log" | "now" | "pool" | "rules"> & {
  readonly dueMessages: DueMessages;
};

/** Whether an activity may ask for a channel of this name. */
const mayAsk = ({ end, channels = {} }: ActivityRecord, name: string): boolean =>
  !end && !channels[name] && Object.keys(channels).length < maxChannels;

/**
 * The broadcast channels of Live Activities. An ask is stored before Apple gets it, one for each app and environment: so a crash leaves at
 * most one channel that no record names.
 */
export const createActivityChannels = ({ bus, pool, rules, dueMessages, now, log }: ActivityChannelsDeps) => {
  const bucket = openBucket(bus, "push_activities", ActivityRecord);

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

  const listOf = async (name: string, client: ProviderChannels | undefined) => {
    const answer = await client?.ask("list", name);
    return answer?.kind === "done" ? answer.ids : undefined;
  };

  const make = async (key: ActivityKey, name: string, client: ProviderChannels): Promise<void> => {
    const listing = listOf(name, client);
    const before = prefixesOf((await withTimeout(listMs, listing)) ? await listing : undefined);
    const askedAt = now().getTime();
    // First: a process that dies with the ask stored must leave a look at it.
    await dueMessages.schedule({ ...key, purpose: "clean" }, new Date(askedAt + lookAfterMs));
    if (!(await write(key, name, (_, record) => (mayAsk(record, name) ? { askedAt, before } : undefined)))) return;
    const answer = await client.ask("make", name);
    if (answer.kind === "done") {
      const [id = ""] = answer.ids;
      if (await write(key, name, (known) => (known?.askedAt === askedAt ? { askedAt, id } : undefined))) return;
      await client.ask("delete", name, id); // its project was deleted meanwhile
    } else {
      log.warn({ ...key, name, ...answer }, "an activity has no channel: its devices have tokens");
      const after = { askedAt, ...(answer.kind === "unknown" && { before }), problem: answer.reason };
      await write(key, name, () => (answer.kind === "not-done" ? null : after));
    }
  };

  /** The id of a channel, which this process or another one makes. Undefined also if an ask was waited for in vain. */
  const find = async (key: ActivityKey, name: string, client: ProviderChannels): Promise<string | undefined> => {
    let asked = false;
    for (const until = performance.now() + waitMs; performance.now() < until; await sleep(pollMs)) {
      const record = await read(key);
      const known = record?.channels?.[name];
      if (!record || record.end) return undefined;
      if (known?.id !== undefined) return known.id;
      if (known ? known.problem !== undefined || now().getTime() - known.askedAt > waitMs : asked) return undefined;
      if (known) continue;
      if (!mayAsk(record, name)) return undefined;
      asked = true;
      const making = make(key, name, client);
      if (await withTimeout(until - performance.now(), making)) await making;
      else making.catch((err: unknown) => log.warn({ ...key, name, err }, "a channel is not stored"));
    }
    return undefined;
  };

  /** Deletes a channel whose time has come, or looks at what a lost answer left. */
  const cleanOne = async (key: ActivityKey, record: ActivityRecord, name: string, known: ActivityChannelRecord) => {
    const at = now().getTime();
    if (cleanAtOf(record, known) > at) return;
    const client = await clientOf(key.projectId);
    const { askedAt, problem = "no answer" } = known;
    const gone = known.left?.id ?? known.id;
    if (gone !== undefined) {
      const answer = await client?.ask("delete", name, gone);
      if (answer?.kind === "done") await write(key, name, (one) => one && { ...one, id: undefined, left: undefined });
      else log.warn({ ...key, name, ...answer }, "a channel is not deleted, which is tried again");
      return;
    }
    const listed = await listOf(name, client);
    if (!listed && at - askedAt < lookWithinMs) return;
    const left = leftChannel(record, known, listed ?? [], at);
    log.warn(
      { ...key, name, left },
      "a channel whose answer was lost counts towards the app's 10,000 until it is deleted",
    );
    await write(key, name, (one) =>
      one?.askedAt === askedAt && !one.id ? { askedAt, problem, ...(left && { left }) } : undefined,
    );
  };

  return {
    read,
    write,

    /** The ids of the channels that devices can follow, by name; made if there is none. None on any failure: then the devices have tokens. */
    of: async (
      key: ActivityKey,
      devices: readonly Pick<Recipient, "app" | "environment">[],
    ): Promise<ReadonlyMap<string, string>> => {
      try {
        if (devices.length === 0 || rules.loading || pauseOf(rules, key.projectId)) return new Map();
        const client = (await read(key))?.via && (await clientOf(key.projectId));
        if (!client) return new Map();
        const names = new Set(devices.flatMap((device) => client.nameOf(device) ?? []));
        const each = [...names].map(async (name) => [name, await find(key, name, client)] as const);
        const found = await Promise.all(each);
        return new Map(found.flatMap(([name, id]) => (id === undefined ? [] : [[name, id]])));
      } catch (err) {
        log.warn({ ...key, err }, "no channel can be asked for");
        return new Map();
      }
    },

    /** Does for each channel of a record what is due, and schedules what comes next. */
    clean: async (key: ActivityKey, record: ActivityRecord): Promise<void> => {
      const each = Object.entries(record.channels ?? {}).map(([name, known]) => cleanOne(key, record, name, known));
      for (const result of await Promise.allSettled(each))
        if (result.status === "rejected") log.warn({ ...key, err: result.reason }, "a channel cannot be cleaned up");
      const after = await read(key);
      const next = after && Math.min(...Object.values(after.channels ?? {}).map((known) => cleanAtOf(after, known)));
      if (next !== undefined && Number.isFinite(next))
        await dueMessages.schedule({ ...key, purpose: "clean" }, new Date(Math.max(next, now().getTime() + retryMs)));
    },

    /** Deletes the records of a project, and its channels as far as Apple answers in time. */
    removeProject: async (projectId: ProjectId): Promise<void> => {
      const keys = await bucket.keys(`${projectId}.*`);
      const until = performance.now() + removeMs;
      let left = 0;
      const removeOne = async (key: string) => {
        const client = performance.now() < until ? await clientOf(projectId) : undefined;
        for (const [name, known] of Object.entries((await bucket.get(key))?.value.channels ?? {}))
          for (const id of [known.id, known.left?.id])
            if (id !== undefined && (await client?.ask("delete", name, id))?.kind !== "done") left++;
        await bucket.delete(key);
      };
      for (let at = 0; at < keys.length; at += removedAtATime)
        await Promise.all(keys.slice(at, at + removedAtATime).map(removeOne));
      if (left > 0) log.warn({ projectId, channels: left }, "channels of a deleted project stay at Apple");
    },
  };
};
