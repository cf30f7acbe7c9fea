import { type Bus, currentOrigin, groupedPublish, type Origin, publish } from "@herald/bus";
import {
  type IdempotencyRecord,
  maxGroupSize,
  type NotificationId,
  newNotificationIds,
  preEncoded,
  SendGroupV1,
  SendOneV1,
  SendV1,
  sendGroupOf,
} from "@herald/contracts";
import { createGroupCommit, describeIssues, HeraldError, hasCode, type Logger } from "@herald/kit";
import type { KeyedRequest, KeyRecords, NewRecord } from "../idempotency/key-records.ts";
import type { ParsedSend } from "./accept-notification.ts";

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

/** The Idempotency-Key of the request that contains the sends. */
export type SendKey = {
  readonly request: KeyedRequest;
  readonly at: Date;
  /** Packs the ids of a request with several sends for its record. */
  readonly batchOf?: (ids: readonly NotificationId[]) => IdempotencyRecord["batch"];
};

type Unit = { readonly sends: readonly ParsedSend[]; readonly origin: Origin; readonly key?: SendKey };

/** A send with its final id, in the group of the id. */
type NumberedSend = { readonly send: ParsedSend; readonly id: NotificationId; readonly groupId: NotificationId };

/** A unit whose sends have their final ids. */
type Numbered = { readonly sends: readonly NumberedSend[]; readonly origin: Origin; readonly record?: NewRecord };

/** The result of a unit: its small sends are published unless `error` is set. Undefined when its key is already claimed. */
type Outcome = (Numbered & { readonly error?: unknown }) | undefined;

/** Their sends were parsed with the request. */
const sendContract = preEncoded(SendV1);
const groupContract = preEncoded(SendGroupV1);
const oneContract = preEncoded(SendOneV1);

/** The JSON of a send with its final id. `more`: further fields of it, with a comma before each. */
const textOf = ({ text }: ParsedSend, id: NotificationId, more = ""): string =>
  `{"notificationId":"${id}",${text}${more}}`;

type EncodedSend = NumberedSend & { readonly text: string };

/** The small sends, each with its origin: a group has sends of many requests. */
const encodeSmall = ({ sends, origin }: Pick<Numbered, "sends" | "origin">): EncodedSend[] => {
  const more = `,"origin":${JSON.stringify(origin)}`;
  return sends.flatMap((one) => (one.send.small ? [{ ...one, text: textOf(one.send, one.id, more) }] : []));
};

/**
 * Publishes sends. Sends that arrive during a write share the next one: one batch for their keys and one message for the small sends. Sends
 * get their ids when the group is closed. Each large or scheduled send is its own message.
 */
export const createSendCommands = (
  bus: () => Bus,
  records: Pick<KeyRecords, "create" | "release" | "setPerformed">,
  log: Pick<Logger, "error">,
) => {
  const publishLarge = groupedPublish(bus, sendContract, { waiting: maxWaiting, maxBytes });
  const publishLargeOf = (sends: readonly NumberedSend[]): Promise<unknown> =>
    Promise.all(
      sends.map(({ send, id }) => {
        if (send.small) return undefined;
        const { projectId } = send.command;
        return publishLarge({ projectId, notificationId: id, text: textOf(send, id) }, id, send.bytes);
      }),
    );

  const publishOne = ({ id, text }: EncodedSend) => publish(bus(), oneContract, { notificationId: id, text }, { id });

  /** Resolves to the errors of sends that could not be published. */
  const publishGroups = async (units: readonly Numbered[]): Promise<Map<NotificationId, unknown>> => {
    const failed = new Map<NotificationId, unknown>();
    const settle = async (own: readonly EncodedSend[], publishing: Promise<unknown>): Promise<void> => {
      try {
        await publishing;
      } catch (error) {
        // One that the broker's client refuses, because it is too large, fails alone.
        if (own.length > 1 && !(error instanceof HeraldError))
          await Promise.all(own.map((send) => settle([send], publishOne(send))));
        else for (const { id } of own) failed.set(id, error);
      }
    };
    const groups = Map.groupBy(units.flatMap(encodeSmall), ({ groupId }) => groupId);
    await Promise.all(
      [...groups].map(([groupId, own]) => {
        const text = `{"groupId":"${groupId}","sends":[${own.map((send) => send.text).join(",")}]}`;
        return settle(own, publish(bus(), groupContract, { groupId, text }, { id: groupId }));
      }),
    );
    return failed;
  };

  const release = ({ record }: Numbered): Promise<void> | undefined => record && records.release(record);

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
      const lost = one.sends.find(({ id }) => failed.has(id));
      return lost === undefined ? one : { ...one, error: failed.get(lost.id) };
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

  /**
   * The send, if services will accept it. Throws internal otherwise: a valid notification must not become such a send. The content of most
   * is as a schema returned it; the gateway itself puts together what dispatch renders, and the state of an activity.
   */
  const check = (send: ParsedSend): ParsedSend => {
    const { command } = send;
    if (command.personal === undefined && command.content.activity === undefined) return send;
    const { success, error } = SendV1.schema.safeParse(command);
    if (success) return send;
    const { projectId } = command;
    log.error({ projectId, problems: describeIssues(error) }, "a notification became a send that cannot be sent");
    throw new HeraldError("internal", "notification: Herald failed to make a send of it");
  };

  return {
    check,
    /**
     * Accepts all sends of one request, which `check` returned: claims its key and publishes them. Resolves to their final ids when they are
     * on disk, or to undefined when the key is already claimed. Throws if one could not be published; others may have been then.
     */
    accept: async (sends: readonly ParsedSend[], key?: SendKey): Promise<readonly NotificationId[] | undefined> => {
      const unit: Unit = { sends, origin: currentOrigin(), key };
      const shares = key !== undefined || sends.some(({ small }) => small);
      const outcome = shares ? await (key ? commitKeyed : commit)(unit, bytesOf(unit)) : withIds([unit])[0];
      if (outcome === undefined) return undefined;
      try {
        if ("error" in outcome) throw outcome.error;
        await publishLargeOf(outcome.sends);
      } catch (error) {
        const released = release(outcome);
        if (!hasCode(error, "bus-unavailable")) await released;
        throw error;
      }
      const { record } = outcome;
      if (record) records.setPerformed(record.request, record.record.id);
      return idsOf(outcome);
    },
    /** Publishes the sends of an earlier attempt, which may have published them already. Repeatable. */
    publishAgain: async (again: readonly ParsedSend[]): Promise<void> => {
      const sends = again.map((send) => {
        const { notificationId: id } = send.command;
        return { send: check(send), id, groupId: sendGroupOf(id) };
      });
      const alone = encodeSmall({ sends, origin: currentOrigin() });
      await Promise.all([publishLargeOf(sends), ...alone.map(publishOne)]);
    },
  };
};

const bytesOf = ({ sends }: Unit): number => sends.reduce((sum, { bytes }) => sum + bytes, 0);

const idsOf = ({ sends }: Numbered): NotificationId[] => sends.map(({ id }) => id);

/** Assigns ids to all sends, in as many groups as their number and size need, and creates a record for each unit with a key. */
const withIds = (units: readonly Unit[]): Numbered[] => {
  const groups: ParsedSend[][] = [];
  let groupBytes = 0;
  for (const { sends } of units)
    for (const send of sends) {
      const last = groups.at(-1);
      const isFull = last === undefined || last.length === maxGroupSize || groupBytes + send.bytes > maxGroupBytes;
      if (isFull) groups.push([send]);
      else last.push(send);
      groupBytes = isFull ? send.bytes : groupBytes + send.bytes;
    }
  const now = new Date();
  const numbered = groups
    .flatMap((group) => {
      const ids = newNotificationIds(now, group.length);
      const groupId = sendGroupOf(ids[0] as NotificationId);
      return group.map((send, at) => ({ send, id: ids[at] as NotificationId, groupId }));
    })
    .values();
  return units.map(({ sends: parsed, origin, key }) => {
    const sends = parsed.flatMap(() => numbered.next().value ?? []);
    if (key === undefined) return { sends, origin };
    const own = sends.map(({ id }) => id);
    const record = { body: key.request.body, id: own[0] ?? "", at: key.at.getTime(), batch: key.batchOf?.(own) };
    return { sends, origin, record: { request: key.request, record } };
  });
};

/** Claims the keys. Returns the units that may be published: units without a key, or whose key was free. */
const claimKeys = async (units: readonly Numbered[], records: Pick<KeyRecords, "create">): Promise<Set<Numbered>> => {
  const keyed = units.filter(({ record }) => record !== undefined);
  const created = keyed.length === 0 ? [] : await records.create(keyed.flatMap(({ record }) => record ?? []));
  const refused = new Set(keyed.filter((_, at) => created[at] !== true));
  return new Set(units.filter((one) => !refused.has(one)));
};
