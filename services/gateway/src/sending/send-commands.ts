import { type Bus, currentOrigin, groupedPublish, type Origin, publish } from "@herald/bus";
import {
  type GroupedSend,
  type IdempotencyRecord,
  maxGroupSize,
  type NotificationId,
  newNotificationIds,
  SendGroupV1,
  SendOneV1,
  SendV1,
  sendGroupOf,
} from "@herald/contracts";
import { createGroupCommit, describeIssues, HeraldError, hasCode, type Logger } from "@herald/kit";
import { isSmallSend } from "@herald/rules";
import type { KeyedRequest, KeyRecords, NewRecord } from "../idempotency/key-records.ts";

/** About two seconds of a gateway's highest load. */
const maxWaiting = 10_000;
/** Enough for 10,000 usual sends, or a thousand of the largest. */
const maxBytes = 64 * 1_048_576;
/** Half of the broker's default limit for a message. */
const maxGroupBytes = 524_288;
/** One write at a time makes groups larger. */
const concurrentGroups = 1;
/**
 * The broker stages each batch of keys in a store of its own, which costs as much as 60 keys. A send that finds the gateway idle for this
 * long does not wait.
 */
const keyedIntervalMs = 25;

/** A send before acceptance: the id in its command is provisional. `bytes`: the command's size as JSON. */
export type NewSend = { readonly command: SendV1; readonly bytes: number };

/** The Idempotency-Key of the request that contains the sends. */
export type SendKey = {
  readonly request: KeyedRequest;
  readonly at: Date;
  /** Packs the ids of a request with several sends for its record. */
  readonly batchOf?: (ids: readonly NotificationId[]) => IdempotencyRecord["batch"];
};

export type SendCommands = ReturnType<typeof createSendCommands>;

type Item = NewSend & { readonly small: boolean };
type Unit = { readonly items: readonly Item[]; readonly origin: Origin; readonly key?: SendKey };

/** A unit whose sends have their final ids. */
type Numbered = Pick<Unit, "items" | "origin"> & { readonly record?: NewRecord };

/** The result of a unit: its small sends are published unless `error` is set. Undefined when its key is already claimed. */
type Outcome = (Numbered & { readonly error?: unknown }) | undefined;

/** Large sends are checked once, by `check`: to parse all conditions of one again costs more than to publish it. */
const checkedSend: typeof SendV1 = { ...SendV1, isPlain: (_): _ is SendV1 => true };

const itemsOf = (sends: readonly NewSend[]): Item[] =>
  sends.map((one) => ({ ...one, small: isSmallSend(one.command) }));
const commandsOf = ({ items }: Pick<Unit, "items">): SendV1[] => items.map(({ command }) => command);

/**
 * Publishes sends. Sends that arrive during a write share the next one: one batch for their keys and one message for the small sends. Sends
 * get their ids when the group is closed. Each large or scheduled send is its own message.
 */
export const createSendCommands = (
  bus: () => Bus,
  records: Pick<KeyRecords, "create" | "note" | "setPerformed">,
  log: Pick<Logger, "error">,
) => {
  const publishLarge = groupedPublish(bus, checkedSend, { waiting: maxWaiting, maxBytes });
  const publishLargeOf = (items: readonly Item[]): Promise<unknown> =>
    Promise.all(
      items.map(({ command, bytes, small }) =>
        small ? undefined : publishLarge(command, command.notificationId, bytes),
      ),
    );

  const publishOne = (send: GroupedSend) => publish(bus(), SendOneV1, send, { id: send.notificationId });

  /** Resolves to the errors of sends that could not be published. */
  const publishGroups = async (units: readonly Numbered[]): Promise<Map<NotificationId, unknown>> => {
    const sends = units.flatMap(({ items, origin }) =>
      items.flatMap(({ command, small }): GroupedSend[] => (small ? [{ ...command, origin }] : [])),
    );
    const failed = new Map<NotificationId, unknown>();
    const settle = async (own: readonly GroupedSend[], publishing: Promise<unknown>): Promise<void> => {
      try {
        await publishing;
      } catch (error) {
        // One that cannot be encoded fails alone.
        if (own.length > 1 && !(error instanceof HeraldError))
          await Promise.all(own.map((send) => settle([send], publishOne(send))));
        else for (const { notificationId } of own) failed.set(notificationId, error);
      }
    };
    const groups = Map.groupBy(sends, ({ notificationId }) => sendGroupOf(notificationId));
    await Promise.all(
      [...groups].map(([groupId, own]) =>
        settle(own, publish(bus(), SendGroupV1, { groupId, sends: own }, { id: groupId })),
      ),
    );
    return failed;
  };

  const release = ({ record }: Numbered): Promise<void> | undefined =>
    record && records.note({ ...record, record: { ...record.record, released: true } });

  const acceptUnits = async (units: readonly Unit[]): Promise<Outcome[]> => {
    const numbered = withIds(units);
    const claimed = await claimKeys(numbered, records);
    const publishable = numbered.filter((one) => claimed.has(one));
    const failed = await publishGroups(publishable);
    const unavailable = [...failed.values()].find((error) => hasCode(error, "bus-unavailable"));
    if (unavailable !== undefined) {
      // Fails the waiting sends at once, because waiting for the records would only delay the responses.
      for (const one of publishable) void release(one);
      throw unavailable;
    }
    return numbered.map((one) => {
      if (!claimed.has(one)) return undefined;
      const lost = one.items.map(({ command }) => command.notificationId).find((id) => failed.has(id));
      return lost === undefined ? one : { ...one, error: failed.get(lost) };
    });
  };

  const groups = {
    max: maxGroupSize,
    concurrent: concurrentGroups,
    groupBytes: maxGroupBytes,
    waiting: maxWaiting,
    maxBytes,
  };
  const commit = createGroupCommit<Unit, Outcome>(acceptUnits, groups);
  const commitKeyed = createGroupCommit<Unit, Outcome>(acceptUnits, { ...groups, intervalMs: keyedIntervalMs });

  /** The send, if services will accept it. Throws internal otherwise: a valid notification must not become such a send. */
  const check = (send: SendV1): SendV1 => {
    const { data, error } = SendV1.schema.safeParse(send);
    if (data) return data;
    const { projectId } = send;
    log.error({ projectId, problems: describeIssues(error) }, "a notification became a send that cannot be sent");
    throw new HeraldError("internal", "notification: Herald failed to make a send of it");
  };

  return {
    check,
    /**
     * Accepts all sends of one request, which `check` returned: claims its key and publishes them. Resolves to the commands with their final
     * ids when they are on disk, or to undefined when the key is already claimed. Throws if one could not be published; others may have
     * been then.
     */
    accept: async (sends: readonly NewSend[], key?: SendKey): Promise<readonly SendV1[] | undefined> => {
      const unit: Unit = { items: itemsOf(sends), origin: currentOrigin(), key };
      const shares = key !== undefined || unit.items.some(({ small }) => small);
      const outcome = shares ? await (key ? commitKeyed : commit)(unit, bytesOf(unit)) : withIds([unit])[0];
      if (outcome === undefined) return undefined;
      try {
        if ("error" in outcome) throw outcome.error;
        await publishLargeOf(outcome.items);
      } catch (error) {
        const released = release(outcome);
        if (!hasCode(error, "bus-unavailable")) await released;
        throw error;
      }
      const { record } = outcome;
      if (record) records.setPerformed(record.request, record.record.id);
      return commandsOf(outcome);
    },
    /** Publishes the sends of an earlier attempt, which may have published them already. Repeatable. */
    publishAgain: async (sends: readonly NewSend[]): Promise<void> => {
      const items = itemsOf(sends.map((one) => ({ ...one, command: check(one.command) })));
      const origin = currentOrigin();
      const alone = items.filter(({ small }) => small);
      await Promise.all([publishLargeOf(items), ...alone.map(({ command }) => publishOne({ ...command, origin }))]);
    },
  };
};

const bytesOf = ({ items }: Unit): number => items.reduce((sum, { bytes }) => sum + bytes, 0);

/** Assigns ids to all sends, in as many groups as their number and size need, and creates a record for each unit with a key. */
const withIds = (units: readonly Unit[]): Numbered[] => {
  const sizes: number[] = [];
  let groupBytes = 0;
  for (const { bytes } of units.flatMap(({ items }) => items)) {
    const count = sizes.at(-1) ?? maxGroupSize;
    const full = count === maxGroupSize || groupBytes + bytes > maxGroupBytes;
    if (full) sizes.push(1);
    else sizes[sizes.length - 1] = count + 1;
    groupBytes = full ? bytes : groupBytes + bytes;
  }
  const now = new Date();
  const ids = sizes.flatMap((size) => newNotificationIds(now, size)).values();
  return units.map(({ items, origin, key }) => {
    const numbered = items.map((item) => {
      const notificationId = ids.next().value ?? item.command.notificationId;
      return { ...item, command: { ...item.command, notificationId } };
    });
    if (key === undefined) return { items: numbered, origin };
    const own = numbered.map(({ command }) => command.notificationId);
    const record = { body: key.request.body, id: own[0] ?? "", at: key.at.getTime(), batch: key.batchOf?.(own) };
    return { items: numbered, origin, record: { request: key.request, record } };
  });
};

/** Claims the keys. Returns the units that may be published: units without a key, or whose key was free. */
const claimKeys = async (units: readonly Numbered[], records: Pick<KeyRecords, "create">): Promise<Set<Numbered>> => {
  const keyed = units.filter(({ record }) => record !== undefined);
  const created = keyed.length === 0 ? [] : await records.create(keyed.flatMap(({ record }) => record ?? []));
  const refused = new Set(keyed.filter((_, at) => created[at] !== true));
  return new Set(units.filter((one) => !refused.has(one)));
};
