import type { DeviceId, DeviceStatus, OutboxEvent, PageOf, PageRequest, Platform, ProjectId } from "@herald/contracts";
import { pushTokenHash } from "@herald/contracts";
import {
  anyOf,
  type Counts,
  ensureIndexes,
  findBatched,
  findPage,
  forCaller,
  guardStore,
  indexName,
  inOneCommand,
  isDuplicateKey,
  type RemovedBatch,
  removeFirst,
  retentionBatch,
  updateBatched,
} from "@herald/mongo";
import type { Collection, Db, Filter } from "mongodb";
import type { DeviceState } from "../domain/device-change.ts";
import { topicFacet } from "../domain/facets.ts";
import { deviceDeleted, type Occasion, type TopicRow } from "../domain/registry-events.ts";
import { type DeviceDocument, deviceIndexes, living, stateFields } from "./device-document.ts";
import { changeSubscriptions, fullFor } from "./device-subscriptions.ts";
import { userQueries } from "./device-users.ts";
import { insertDevices } from "./insert-devices.ts";
import type { PendingEvents } from "./pending-events.ts";
import { recordSeen } from "./record-last-seen.ts";
import { retireDevice } from "./retire-device.ts";

export type DeviceStore = ReturnType<typeof createDeviceStore>;

export const deviceCollection = (db: Db): Collection<DeviceDocument> => db.collection<DeviceDocument>("devices");

const platforms: readonly Platform[] = ["ios", "android", "web"];

/** Who holds a push token: at most one device. */
type Holding = { readonly projectId: ProjectId; readonly platform: Platform; readonly tokenHash: string };

/** Splits fields into what `$set` and what `$unset` takes. */
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
  const findHolder = inOneCommand<Holding, DeviceDocument | undefined>(async (asked) => {
    const some = <Field extends keyof Holding>(field: Field) => anyOf(asked.map((one) => one[field]));
    const found = await devices
      .find(
        {
          projectId: some("projectId"),
          platform: some("platform"),
          tokenHash: some("tokenHash"),
        } as Filter<DeviceDocument>,
        { hint: indexName(deviceIndexes.token), batchSize: asked.length * platforms.length },
      )
      .toArray();
    const keyOf = ({ projectId, platform, tokenHash }: Partial<Holding>) => `${projectId}/${platform}/${tokenHash}`;
    const holders = new Map(found.map((device) => [keyOf(device), device]));
    return asked.map((one) => holders.get(keyOf(one)));
  });

  return guardStore({
    ensureIndexes: () => ensureIndexes(devices, Object.values(deviceIndexes)),

    find: async (projectId: ProjectId, id: DeviceId): Promise<DeviceDocument | undefined> => {
      const device = await findDevice({ projectId, _id: id });
      return device === null || device.deletedAt !== undefined ? undefined : device;
    },

    findByToken: (projectId: ProjectId, platform: Platform, token: string): Promise<DeviceDocument | undefined> =>
      findHolder({ projectId, platform, tokenHash: pushTokenHash(token) }),

    /** The devices that hold a token: at most one for each platform. */
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

    insert: insertDevices(devices, pending),

    /** Notes that a device has registered as it is. Of registrations at about the same time the last is written, and all in one command. */
    seen: recordSeen(devices),

    /**
     * Writes a state that was made from `before`: "conflict" when the device is no longer that, "token-held" when another
     * device has the token.
     */
    change: async (
      before: DeviceDocument,
      state: DeviceState,
      {
        at,
        events,
        credentialHash = before.credentialHash,
      }: { at: Date; events: OutboxEvent[]; credentialHash?: string },
    ): Promise<DeviceDocument | "conflict" | "token-held"> => {
      const { _id, projectId, version } = before;
      const inactiveAt = state.status === "inactive" ? (before.inactiveAt ?? at) : undefined;
      const fields = {
        ...stateFields(state, at),
        inactiveAt,
        credentialHash,
        version: version + 1,
        ...(before.doubtedAt && state.tokenUpdatedAt > before.tokenUpdatedAt && { doubtedAt: undefined }),
      };
      const filter = { projectId, _id, version, ...living };
      const update = {
        ...setAndUnset(fields),
        ...(events.length > 0 ? { $push: { outbox: { $each: events } } } : {}),
      } as Parameters<typeof updateOne>[2];
      // What the state leaves out is gone, and must not come back from what was there before.
      const { userId: _user, identifiedAt: _at, ...kept } = before;
      const after = { ...kept, ...state, updatedAt: at, credentialHash, version: version + 1 };
      // Only another token can be held by another device: all else may share a command, and a conflict looks again.
      if (state.token === before.token && before.tokenHash !== undefined)
        return (await updateOne({ _id, projectId }, { version, ...living }, update)) === "updated" ? after : "conflict";
      try {
        const { matchedCount } = await devices.updateOne(filter, update);
        return matchedCount === 0 ? "conflict" : after;
      } catch (error) {
        if (isDuplicateKey(error)) return "token-held";
        throw error;
      }
    },

    retire: retireDevice(devices),

    /** Leaves a tombstone without token and data until its event is out. False when there is no such device, or it is not `userId`'s. */
    remove: async (occasion: Occasion, id: DeviceId, userId?: string): Promise<boolean> => {
      const { projectId, at } = occasion;
      const { modifiedCount } = await devices.updateOne(
        { projectId, _id: id, ...living, ...(userId !== undefined && { userId }) },
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
          },
          $inc: { version: 1 },
          $push: { outbox: deviceDeleted(occasion, id) },
        },
      );
      return modifiedCount > 0;
    },

    /** Removes a batch of tombstones from before `before` whose events are out. */
    removeTombstones: async (before: Date): Promise<RemovedBatch> => {
      const old = { deletedAt: { $exists: true, $lt: before }, outbox: { $exists: false } };
      const { tombstone } = deviceIndexes;
      const { length } = await removeFirst(devices, old, { hint: indexName(tombstone), sort: tombstone.fields });
      return { removed: length, more: length === retentionBatch };
    },

    list: (
      projectId: ProjectId,
      status: DeviceStatus | undefined,
      request: PageRequest,
    ): Promise<PageOf<DeviceDocument>> =>
      findPage(devices, {
        // A tombstone has no status.
        filter: status ? { projectId, status } : { projectId, ...living },
        hint: indexName(status ? deviceIndexes.status : deviceIndexes.list),
        request,
        counts,
      }),

    ...userQueries(devices),

    /** A project's devices, counted up to `limit`. */
    countUpTo: (projectId: ProjectId, limit: number): Promise<number> =>
      devices.countDocuments({ projectId, ...living }, { hint: indexName(deviceIndexes.list), limit }),

    /** Which of the ids are devices of the project. */
    known: async (projectId: ProjectId, ids: readonly DeviceId[]): Promise<Set<DeviceId>> => {
      const rows = await devices
        .find(
          { projectId, _id: { $in: [...ids] }, ...living },
          { hint: indexName(deviceIndexes.list), projection: { _id: 1 }, batchSize: ids.length + 1 },
        )
        .toArray();
      return new Set(rows.map(({ _id }) => _id));
    },

    fullFor: fullFor(devices),

    /** Subscribes those devices that are not; resolves to how many they were. Each gets an event of its own. */
    subscribe: (occasion: Occasion, ids: readonly DeviceId[], topic: TopicRow): Promise<number> =>
      changeSubscriptions(devices, occasion, ids, topic, "DeviceSubscribedV1"),

    unsubscribe: (occasion: Occasion, ids: readonly DeviceId[], topic: TopicRow): Promise<number> =>
      changeSubscriptions(devices, occasion, ids, topic, "DeviceUnsubscribedV1"),

    countSubscribers: (projectId: ProjectId, topic: string): Promise<number> =>
      counts.count({
        collection: devices,
        filter: { projectId, facets: topicFacet(topic) },
        hint: indexName(deviceIndexes.facets),
      }),

    /** How many active Web Push subscriptions each VAPID key has, exactly; those that name none count under undefined. */
    countByVapidKey: async (projectId: ProjectId): Promise<Map<string | undefined, number>> => {
      const rows = await devices
        .aggregate<{ _id: string | null; devices: number }>(
          [
            { $match: { projectId, keys: { $exists: true }, status: "active" } },
            { $group: { _id: "$vapidKeyId", devices: { $sum: 1 } } },
          ],
          { hint: indexName(deviceIndexes.vapidKey), ...forCaller() },
        )
        .toArray();
      return new Map(rows.map(({ _id, devices: count }) => [_id ?? undefined, count]));
    },

    /** Ends up to `limit` subscriptions to a topic that is deleted; resolves to how many there were. */
    unsubscribeSome: async (projectId: ProjectId, topic: string, limit: number): Promise<number> => {
      const facet = topicFacet(topic);
      const ids = await someIds(devices, { projectId, facets: facet }, indexName(deviceIndexes.facets), limit);
      if (ids.length > 0)
        await devices.updateMany(
          { projectId, _id: { $in: ids }, facets: facet },
          { $pull: { facets: facet }, $inc: { version: 1 } },
        );
      return ids.length;
    },

    /** Removes up to `limit` devices of a project that is deleted; resolves to how many there were. */
    removeSome: async (projectId: ProjectId, limit: number): Promise<number> => {
      const ids = await someIds(devices, { projectId }, indexName(deviceIndexes.list), limit);
      if (ids.length > 0) await devices.deleteMany({ projectId, _id: { $in: ids } });
      return ids.length;
    },
  });
};

const someIds = async (
  devices: Collection<DeviceDocument>,
  filter: Filter<DeviceDocument>,
  hint: string,
  limit: number,
): Promise<DeviceId[]> => {
  const rows = await devices.find(filter, { hint, limit, projection: { _id: 1 }, batchSize: limit + 1 }).toArray();
  // Writers of many take them in one order, or two of them wait for each other.
  return rows.map(({ _id }) => _id).sort();
};
