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
import { channelsDueAt, isLost, leftChannel, lookAfterMs, prefixesOf } from "../domain/activity.ts";
import { pauseOf } from "../project-rules.ts";
import type { ProviderChannels } from "../providers/provider-client.ts";
import type { DueMessages } from "./follow-up.ts";

/** A start, or an app that asks, waits so long for a channel. Afterwards the device has a token. */
const waitMs = 3_000;
const pollMs = 50;
const listMs = 2_000;
const retryMs = 60_000;
/** The deletion of a project waits no longer for Apple. */
const removeMs = 10_000;

export type ActivityChannels = ReturnType<typeof createActivityChannels>;

type ActivityChannelsDeps = Pick<Deps, "bus" | "log" | "now" | "pool" | "rules"> & {
  readonly dueMessages: DueMessages;
};

/**
 * The broadcast channels of Live Activities. An ask is stored before Apple gets it, one for each app and environment: so a crash leaves at
 * most one channel that no record names.
 */
export const createActivityChannels = ({ bus, pool, rules, dueMessages, now, log }: ActivityChannelsDeps) => {
  const bucket = openBucket(bus, "push_activities", ActivityRecord);
  const finding = new Map<string, Promise<string | undefined>>();

  const read = async (key: ActivityKey) => (await bucket.get(activityKey(key)))?.value;

  /** Changes a channel by compare-and-set; null removes it. Resolves to false if `change` gives nothing, or the record is gone. */
  const write = async (
    key: ActivityKey,
    name: string,
    change: (known: ActivityChannelRecord | undefined) => ActivityChannelRecord | null | undefined,
  ): Promise<boolean> => {
    for (;;) {
      const entry = await bucket.get(activityKey(key));
      const changed = entry && change(entry.value.channels?.[name]);
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

  const make = async (key: ActivityKey, name: string, client: ProviderChannels, cleanAt: number) => {
    const listing = client.ask("list", name);
    const before = (await withTimeout(listMs, listing)) ? prefixesOf(await listing) : undefined;
    const askedAt = now().getTime();
    const asked = { askedAt, ...(before !== undefined && { before }) };
    if (!(await write(key, name, (known) => (known ? undefined : asked)))) return;
    await dueMessages.schedule({ ...key, purpose: "look" }, new Date(askedAt + lookAfterMs));
    await dueMessages.schedule({ ...key, purpose: "clean" }, new Date(cleanAt));
    const answer = await client.ask("make", name);
    if (answer.kind === "done") {
      const [id = ""] = answer.ids;
      if (await write(key, name, (known) => (known?.askedAt === askedAt ? { askedAt, id } : undefined))) return;
      await client.ask("delete", name, id); // its project was deleted meanwhile
    } else {
      log.warn({ ...key, name, ...answer }, "an activity has no channel: its devices have tokens");
      const after = { ...(answer.kind === "unknown" ? asked : { askedAt }), problem: answer.reason };
      await write(key, name, () => (answer.kind === "not-done" ? null : after));
    }
  };

  /** The id of a channel, which this process or another one makes. */
  const find = async (key: ActivityKey, name: string, client: ProviderChannels): Promise<string | undefined> => {
    for (const until = performance.now() + waitMs; performance.now() < until; await sleep(pollMs)) {
      const record = await read(key);
      const known = record?.channels?.[name];
      if (!record || record.end || known?.problem !== undefined) return undefined;
      if (known?.id !== undefined) return known.id;
      if (!known) await make(key, name, client, channelsDueAt(record));
    }
    return undefined;
  };

  /** Deletes a channel whose time has come, or looks at what a lost answer left. Resolves to whether it must be tried again. */
  const cleanOne = async (key: ActivityKey, record: ActivityRecord, name: string, known: ActivityChannelRecord) => {
    const at = now().getTime();
    const { id, left, askedAt, problem = "no answer" } = known;
    const gone = left ? left.at <= at && left.id : at >= channelsDueAt(record) && id;
    if (!gone && !isLost(record, known, at)) return false;
    const client = await clientOf(key.projectId);
    if (gone) {
      const answer = await client?.ask("delete", name, gone);
      if (answer?.kind === "refused") log.warn({ ...key, name, ...answer }, "a channel is not deleted");
      else if (answer?.kind !== "done") return true;
      return write(key, name, (one) => one && { ...one, id: undefined, left: undefined }).then(() => false);
    }
    const found = leftChannel(record, known, await client?.ask("list", name), at);
    log.warn(
      { ...key, name, found },
      "a channel whose answer was lost counts towards the app's 10,000 until it is deleted",
    );
    await write(key, name, (one) =>
      one?.askedAt === askedAt && !one.id ? { askedAt, problem, ...(found && { left: found }) } : undefined,
    );
    if (found) await dueMessages.schedule({ ...key, purpose: "left" }, new Date(found.at));
    return false;
  };

  return {
    read,
    write,

    /** The ids of the channels that devices can follow, by name; made if there is none. None on any failure: then the devices have tokens. */
    of: async (
      key: ActivityKey,
      devices: readonly Pick<Recipient, "app" | "environment">[],
    ): Promise<ReadonlyMap<string, string>> => {
      const found = new Map<string, string>();
      const findAll = async () => {
        if (
          devices.length === 0 ||
          rules.loading ||
          pauseOf(rules, key.projectId) ||
          (await read(key))?.via === undefined
        )
          return;
        const client = await clientOf(key.projectId);
        const names = new Set(devices.flatMap((device) => client?.nameOf(device) ?? []));
        const each = [...names].map(async (name) => {
          const place = `${activityKey(key)}/${name}`;
          const one = finding.get(place) ?? (client && find(key, name, client).finally(() => finding.delete(place)));
          if (one) finding.set(place, one);
          const id = await one;
          if (id !== undefined) found.set(name, id);
        });
        await Promise.all(each);
      };
      const all = findAll().catch((err: unknown) => log.warn({ ...key, err }, "no channel can be asked for"));
      await withTimeout(waitMs, all);
      return new Map(found); // what is made later is for later starts
    },

    /** Does for each channel of a record what is due, and schedules what comes next. */
    clean: async (key: ActivityKey, record: ActivityRecord): Promise<void> => {
      const channels = Object.entries(record.channels ?? {});
      const results = await Promise.allSettled(channels.map(([name, known]) => cleanOne(key, record, name, known)));
      const failed = results.find((result) => result.status === "rejected");
      if (failed) log.warn({ ...key, err: failed.reason }, "a channel cannot be cleaned up");
      const at = now().getTime();
      const again = failed || results.some((result) => result.status === "fulfilled" && result.value);
      // The schedule of the ask was for an end at `endsAt`.
      const endsEarly = record.end && at < channelsDueAt(record) && channels.some(([, { id }]) => id !== undefined);
      if (again || endsEarly)
        await dueMessages.schedule(
          { ...key, purpose: "clean" },
          new Date(again ? at + retryMs : channelsDueAt(record)),
        );
    },

    /** Deletes the records of a project, and its channels as far as Apple answers in time. */
    removeProject: async (projectId: ProjectId): Promise<void> => {
      const keys = await bucket.keys(`${projectId}.*`);
      const removeOne = async (key: string) => {
        const client = await clientOf(projectId);
        for (const [name, { id }] of Object.entries((await bucket.get(key))?.value.channels ?? {}))
          if (id !== undefined) await client?.ask("delete", name, id);
      };
      await withTimeout(removeMs, Promise.allSettled(keys.map(removeOne)));
      await Promise.all(keys.map((key) => bucket.delete(key)));
    },
  };
};
