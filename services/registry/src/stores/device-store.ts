import {
  type DeviceId,
  type OutboxEvent,
  type Platform,
  type ProjectId,
  pushTokenHash,
  type Served,
} from "@herald/contracts";
import {
  anyOf,
  byIndex,
  type Counts,
  deadlineOptions,
  ensureIndexes,
  findBatched,
  guardStore,
  indexName,
  inOneCommand,
  isDuplicateKey,
  type RemovedBatch,
  removeFirst,
  removeOldest,
  updateBatched,
  withinDeadline,
} from "@herald/mongo";
import type { Collection, Db, Filter } from "mongodb";
import type { DeviceState } from "../domain/device-change.ts";
import { topicFacet } from "../domain/facets.ts";
import { deviceDeleted, type EventContext, type TopicRow } from "../domain/registry-events.ts";
import { type DeviceDocument, deviceIndexes, stateFields } from "./device-document.ts";
import { changeSubscriptions, fullFor } from "./device-subscriptions.ts";
import { insertDevices } from "./insert-devices.ts";
import { listDevices } from "./list-devices.ts";
import { listUsers } from "./list-users.ts";
import type { PendingEvents } from "./pending-events.ts";
import { recordOpened, recordSeen } from "./record-last-seen.ts";
import { retireDevice } from "./retire-device.ts";
import { retireStale } from "./retire-stale.ts";
import { notDeleted } from "./tombstones.ts";

export type DeviceStore = ReturnType<typeof createDeviceStore>;

export const deviceCollection = (db: Db): Collection<DeviceDocument> => db.collection<DeviceDocument>("devices");

const platforms: readonly Platform[] = ["ios", "android", "web"];

type Holding = Served & { readonly projectId: ProjectId; readonly tokenHash: string };

/** A platform has at most this many providers. */
const maxProviders = 2;

const setAndUnset = (fields: Readonly<Record<string, unknown>>) => {
  const entries = Object.entries(fields);
  const absent = entries.filter(([, value]) => value === undefined);
  return {
    $set: Object.fromEntries(entries.filter(([, value]) => value !== undefined)),
    ...(absent.length > 0 ? { $unset: Object.fromEntries(absent.map(([field]) => [field, ""])) } : {}),
  };
};

export const createDeviceStore = (db: Db, counts: Counts, pending: Pick<PendingEvents, "add" | "settle">) => {
  const devices = deviceCollection(db);
  const updateOne = updateBatched(devices);
  const findDevice = findBatched(devices);
  const findHolders = async (asked: readonly Holding[]): Promise<(DeviceDocument | undefined)[]> => {
    const some = <Field extends keyof Holding>(field: Field) => anyOf(asked.map((one) => one[field]));
    const found = await devices
      .find(
        {
          projectId: some("projectId"),
          platform: some("platform"),
          tokenHash: some("tokenHash"),
        } as Filter<DeviceDocument>,
        { hint: indexName(deviceIndexes.token), batchSize: asked.length * platforms.length * maxProviders },
      )
      .toArray();
    const keyOf = ({ projectId, platform, provider, tokenHash }: Partial<Holding>) =>
      `${projectId}/${platform}/${provider}/${tokenHash}`;
    const holders = new Map(found.map((device) => [keyOf(device), device]));
    return asked.map((one) => holders.get(keyOf(one)));
  };
  const findHolder = inOneCommand(findHolders);

  return guardStore({
    ensureIndexes: () => ensureIndexes(devices, Object.values(deviceIndexes)),

    find: async (projectId: ProjectId, id: DeviceId): Promise<DeviceDocument | undefined> => {
      const device = await findDevice({ projectId, _id: id });
      return device === null || device.deletedAt !== undefined ? undefined : device;
    },

    /** `served` as it is stored: without the platform's own provider. */
    findByToken: (projectId: ProjectId, served: Served, token: string): Promise<DeviceDocument | undefined> =>
      findHolder({ projectId, ...served, tokenHash: pushTokenHash(token) }),

    /** The same for many, in one command. */
    findByTokens: (asked: readonly Holding[]): Promise<(DeviceDocument | undefined)[]> =>
      withinDeadline(findHolders(asked)),

    /** At most one device for each platform and provider. */
    findHolders: (
      projectId: ProjectId,
      token: string,
      on: readonly Platform[] = platforms,
    ): Promise<DeviceDocument[]> =>
      devices
        .find(
          { projectId, platform: { $in: [...on] }, tokenHash: pushTokenHash(token) },
          { hint: indexName(deviceIndexes.token) },
        )
        .toArray(),

    ...insertDevices(devices, pending),

    /** Stores the time of registrations that changed nothing, many in one command. */
    seen: recordSeen(devices, ["lastSeenAt", "tokenUpdatedAt"]),

    /** The same for what an app does without its push token. */
    active: recordSeen(devices, ["lastSeenAt"]),

    opened: recordOpened(devices),

    ...retireStale(devices),

    /** "conflict": the device has changed since `before`; "token-held": another device has the token. */
    change: async (
      before: DeviceDocument,
      state: DeviceState,
      write: { at: Date; events: OutboxEvent[]; credentialHash?: string },
    ): Promise<DeviceDocument | "conflict" | "token-held"> => {
      const { _id, projectId, version } = before;
      const { at, events, credentialHash = before.credentialHash } = write;
      const inactiveAt = state.status === "inactive" ? (before.inactiveAt ?? at) : undefined;
      const fields = {
        ...stateFields(state, at),
        inactiveAt,
        credentialHash,
        version: version + 1,
        ...(before.doubtedAt && state.tokenUpdatedAt > before.tokenUpdatedAt && { doubtedAt: undefined }),
      };
      const update = {
        ...setAndUnset(fields),
        ...(events.length > 0 ? { $push: { outbox: { $each: events } } } : {}),
      } as Parameters<typeof updateOne>[2];
      // Fields that the state lacks must not come from `before`.
      const { userId: _user, identifiedAt: _at, installationId: _installation, ...kept } = before;
      const after = { ...kept, ...state, updatedAt: at, credentialHash, version: version + 1 };
      // Without a new token no unique index is involved, so the update may share a command with others.
      if (state.token === before.token && before.tokenHash !== undefined)
        return (await updateOne({ _id, projectId }, { version, ...notDeleted }, update)) === "updated"
          ? after
          : "conflict";
      try {
        const { matchedCount } = await devices.updateOne({ projectId, _id, version, ...notDeleted }, update);
        return matchedCount === 0 ? "conflict" : after;
      } catch (error) {
        if (isDuplicateKey(error)) return "token-held";
        throw error;
      }
    },

    retire: retireDevice(devices),

    /** Leaves a tombstone without token and data until its event is published. False when there is no such device, or it is not `userId`'s. */
    remove: async (context: EventContext, id: DeviceId, userId?: string): Promise<boolean> => {
      const { projectId, at } = context;
      const { modifiedCount } = await devices.updateOne(
        { projectId, _id: id, ...notDeleted, ...(userId !== undefined && { userId }) },
        {
          $set: { deletedAt: at, metadata: {}, identifiers: {}, facets: [], token: "", credentialHash: "" },
          $unset: {
            status: "",
            tokenHash: "",
            keys: "",
            vapidKeyId: "",
            locale: "",
            userId: "",
            identifiedAt: "",
            userTokenIat: "",
            installationId: "",
          },
          $inc: { version: 1 },
          $push: { outbox: deviceDeleted(context, id) },
        },
      );
      return modifiedCount > 0;
    },

    /** Removes a batch of tombstones from before `before` whose events are published. */
    removeTombstones: async (before: Date): Promise<RemovedBatch> => {
      const old = { deletedAt: { $exists: true, $lt: before }, outbox: { $exists: false } };
      const { tombstone } = deviceIndexes;
      return removeOldest(devices, old, byIndex(tombstone));
    },

    list: listDevices(devices, counts),

    /** The devices of these ids, with the fields that decide whether a push may be sent. */
    findRecipients: (
      projectId: ProjectId,
      ids: readonly DeviceId[],
    ): Promise<Pick<DeviceDocument, "_id" | "status" | "userId">[]> =>
      devices
        .find(
          { projectId, _id: { $in: [...ids] }, ...notDeleted },
          { hint: indexName(deviceIndexes.list), projection: { status: 1, userId: 1 }, batchSize: ids.length + 1 },
        )
        .toArray(),

    listUsers: listUsers(devices),

    /** The active devices among these ids, unsorted. */
    findActive: (projectId: ProjectId, ids: readonly DeviceId[]): Promise<DeviceDocument[]> =>
      devices
        .find(
          { projectId, _id: { $in: [...ids] }, status: "active" },
          { hint: indexName(deviceIndexes.list), batchSize: ids.length + 1, ...deadlineOptions() },
        )
        .toArray(),

    /** Up to `limit` of a user's devices, oldest first. A tombstone has no user. */
    ofUser: (projectId: ProjectId, userId: string, limit: number): Promise<DeviceDocument[]> =>
      devices
        .find({ projectId, userId }, { hint: indexName(deviceIndexes.users), batchSize: limit + 1 })
        .sort({ _id: 1 })
        .limit(limit)
        .toArray(),

    countOfUser: (projectId: ProjectId, userId: string): Promise<number> =>
      devices.countDocuments({ projectId, userId }, { hint: indexName(deviceIndexes.users) }),

    countUpTo: (projectId: ProjectId, limit: number): Promise<number> =>
      devices.countDocuments({ projectId, ...notDeleted }, { hint: indexName(deviceIndexes.list), limit }),

    count: (projectId: ProjectId): Promise<number> =>
      counts.count({ collection: devices, filter: { projectId, ...notDeleted }, hint: indexName(deviceIndexes.list) }),

    known: async (projectId: ProjectId, ids: readonly DeviceId[]): Promise<Set<DeviceId>> => {
      const rows = await devices
        .find(
          { projectId, _id: { $in: [...ids] }, ...notDeleted },
          { hint: indexName(deviceIndexes.list), projection: { _id: 1 }, batchSize: ids.length + 1 },
        )
        .toArray();
      return new Set(rows.map(({ _id }) => _id));
    },

    fullFor: fullFor(devices),

    /** Resolves to the number of new subscriptions, each with an event. */
    subscribe: (context: EventContext, ids: readonly DeviceId[], topic: TopicRow): Promise<number> =>
      changeSubscriptions(devices, context, ids, topic, "DeviceSubscribedV1"),

    unsubscribe: (context: EventContext, ids: readonly DeviceId[], topic: TopicRow): Promise<number> =>
      changeSubscriptions(devices, context, ids, topic, "DeviceUnsubscribedV1"),

    countSubscribers: (projectId: ProjectId, topic: string): Promise<number> =>
      counts.count({
        collection: devices,
        filter: { projectId, facets: topicFacet(topic) },
        hint: indexName(deviceIndexes.facets),
      }),

    /** Exact number of active Web Push subscriptions by VAPID key; undefined: those without a key id. */
    countByVapidKey: async (projectId: ProjectId): Promise<Map<string | undefined, number>> => {
      const rows = await devices
        .aggregate<{ _id: string | null; devices: number }>(
          [
            { $match: { projectId, keys: { $exists: true }, status: "active" } },
            { $group: { _id: "$vapidKeyId", devices: { $sum: 1 } } },
          ],
          { hint: indexName(deviceIndexes.vapidKey), ...deadlineOptions() },
        )
        .toArray();
      return new Map(rows.map(({ _id, devices: count }) => [_id ?? undefined, count]));
    },

    /** Removes up to `limit` subscriptions to a deleted topic. Resolves to how many. */
    unsubscribeSome: async (projectId: ProjectId, topic: string, limit: number): Promise<number> => {
      const filter = { projectId, facets: topicFacet(topic) };
      const hint = indexName(deviceIndexes.facets);
      const rows = await devices.find(filter, { hint, limit, projection: { _id: 1 }, batchSize: limit + 1 }).toArray();
      // Sorted: concurrent writers in different orders could wait for each other.
      const ids = rows.map(({ _id }) => _id).sort();
      if (ids.length > 0)
        await devices.updateMany(
          { ...filter, _id: { $in: ids } },
          { $pull: { facets: filter.facets }, $inc: { version: 1 } },
        );
      return ids.length;
    },

    /** Removes up to `limit` devices of a deleted project. Resolves to how many. */
    removeSome: async (projectId: ProjectId, limit: number): Promise<number> => {
      const { list } = deviceIndexes;
      return (await removeFirst(devices, { projectId }, { ...byIndex(list), limit })).length;
    },
  });
};
