import type { DeviceId, DeviceStatus, OutboxEvent, PageOf, PageRequest, Platform, ProjectId } from "@herald/contracts";
import { pushTokenHash } from "@herald/contracts";
import {
  anyOf,
  type Counts,
  ensureIndexes,
  findPage,
  indexName,
  inOneCommand,
  insertTogether,
  isDuplicateKey,
  updateTogether,
} from "@herald/mongo";
import type { Collection, Db, Filter } from "mongodb";
import type { DeviceState } from "../domain/device-change.ts";
import { maxFacets, topicFacet, userFacet } from "../domain/facets.ts";
import { deviceDeactivated, deviceDeleted, type Occasion, type TopicRow } from "../domain/registry-events.ts";
import { type DeviceDocument, deviceIndexes, stateFields } from "./device-document.ts";
import { repeatableStore } from "./repeatable-store.ts";

export type DeviceStore = ReturnType<typeof createDeviceStore>;

export const deviceCollection = (db: Db): Collection<DeviceDocument> => db.collection<DeviceDocument>("devices");

const platforms: readonly Platform[] = ["ios", "android", "web"];

/** Who holds a push token: at most one device. */
type Holding = { readonly projectId: ProjectId; readonly platform: Platform; readonly tokenHash: string };

const living = { deletedAt: { $exists: false } } as const;

/** A device with room for one more facet, as alternatives: that of its user does not count. */
const roomy: Filter<DeviceDocument>[] = [
  { [`facets.${maxFacets - 1}`]: { $exists: false } },
  { userId: { $exists: true }, [`facets.${maxFacets}`]: { $exists: false } },
];

/** Splits fields into what `$set` and what `$unset` takes. */
const setAndUnset = (fields: Readonly<Record<string, unknown>>) => {
  const entries = Object.entries(fields);
  const absent = entries.filter(([, value]) => value === undefined);
  return {
    $set: Object.fromEntries(entries.filter(([, value]) => value !== undefined)),
    ...(absent.length > 0 ? { $unset: Object.fromEntries(absent.map(([field]) => [field, ""])) } : {}),
  };
};

export const createDeviceStore = (db: Db, counts: Counts) => {
  const devices = deviceCollection(db);
  const insertOne = insertTogether(devices);
  const updateOne = updateTogether(devices);
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

  return repeatableStore({
    ensureIndexes: () => ensureIndexes(devices, Object.values(deviceIndexes)),

    find: async (projectId: ProjectId, id: DeviceId): Promise<DeviceDocument | undefined> =>
      (await devices.findOne({ projectId, _id: id, ...living })) ?? undefined,

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

    /** False when another device of the project got the token first. */
    insert: (document: DeviceDocument): Promise<boolean> => insertOne(document),

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
      const fields = { ...stateFields(state, at), inactiveAt, credentialHash, version: version + 1 };
      const filter = { projectId, _id, version, ...living };
      const update = {
        ...setAndUnset(fields),
        ...(events.length > 0 ? { $push: { outbox: { $each: events } } } : {}),
      } as Parameters<typeof updateOne>[1];
      // What the state leaves out is gone, and must not come back from what was there before.
      const { userId: _user, identifiedAt: _at, ...kept } = before;
      const after = { ...kept, ...state, updatedAt: at, credentialHash, version: version + 1 };
      // Only another token can be held by another device: all else may share a command, and a conflict looks again.
      if (state.token === before.token && before.tokenHash !== undefined)
        return (await updateOne(filter, update)) === "updated" ? after : "conflict";
      try {
        const { matchedCount } = await devices.updateOne(filter, update);
        return matchedCount === 0 ? "conflict" : after;
      } catch (error) {
        if (isDuplicateKey(error)) return "token-held";
        throw error;
      }
    },

    /** Only the registration that the verdict was about: a late one must not retire a device that has since re-registered. */
    retire: async (occasion: Occasion, id: DeviceId, tokenHash: string, at: Date): Promise<boolean> => {
      const { projectId } = occasion;
      const { modifiedCount } = await devices.updateOne(
        { projectId, _id: id, tokenHash, status: "active", tokenUpdatedAt: { $lt: at } },
        {
          $set: { status: "inactive", inactiveReason: "unregistered", inactiveAt: occasion.at, updatedAt: occasion.at },
          $inc: { version: 1 },
          $push: { outbox: deviceDeactivated(occasion, id, "unregistered") },
        },
      );
      return modifiedCount > 0;
    },

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

    /** Those of the ids that are devices of the project, each with what tells whether it may be sent to. */
    findRecipients: (
      projectId: ProjectId,
      ids: readonly DeviceId[],
    ): Promise<Pick<DeviceDocument, "_id" | "status" | "userId">[]> =>
      devices
        .find(
          { projectId, _id: { $in: [...ids] }, ...living },
          { hint: indexName(deviceIndexes.list), projection: { status: 1, userId: 1 }, batchSize: ids.length + 1 },
        )
        .toArray(),

    /** Up to `limit` of a user's devices, oldest first. */
    ofUser: async (projectId: ProjectId, userId: string, limit: number): Promise<DeviceDocument[]> => {
      const found = await devices
        .find(
          { projectId, facets: userFacet(userId), ...living },
          { hint: indexName(deviceIndexes.facets), limit, batchSize: limit + 1 },
        )
        .toArray();
      return found.sort((one, other) => (one._id < other._id ? -1 : 1));
    },

    countOfUser: (projectId: ProjectId, userId: string): Promise<number> =>
      devices.countDocuments(
        { projectId, facets: userFacet(userId), ...living },
        { hint: indexName(deviceIndexes.facets) },
      ),

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

    /** Those of the devices that are not subscribed to a topic, because they have no room for another facet. */
    fullFor: async (projectId: ProjectId, ids: readonly DeviceId[], topic: string): Promise<DeviceId[]> => {
      const rows = await devices
        .find(
          { projectId, _id: { $in: [...ids] }, ...living, facets: { $ne: topicFacet(topic) }, $nor: roomy },
          { hint: indexName(deviceIndexes.list), projection: { _id: 1 }, batchSize: ids.length + 1 },
        )
        .toArray();
      return rows.map(({ _id }) => _id);
    },

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
          { hint: indexName(deviceIndexes.vapidKey) },
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

/** One update for all, whose pipeline makes each device's event from the device: a write for each would take twice as long. */
const changeSubscriptions = async (
  devices: Collection<DeviceDocument>,
  { projectId, at, newId }: Occasion,
  ids: readonly DeviceId[],
  topic: TopicRow,
  event: "DeviceSubscribedV1" | "DeviceUnsubscribedV1",
): Promise<number> => {
  if (ids.length === 0) return 0;
  const facet = topicFacet(topic.name);
  const subscribe = event === "DeviceSubscribedV1";
  const fact = {
    id: { $concat: [{ $literal: `${newId()}/` }, "$_id"] },
    event: { $literal: event },
    subject: "$_id",
    at,
    data: {
      projectId: { $literal: projectId },
      deviceId: "$_id",
      topicId: { $literal: topic.id },
      topic: { $literal: topic.name },
      at: { $literal: at.toISOString() },
    },
  };
  const { modifiedCount } = await devices.updateMany(
    {
      projectId,
      _id: { $in: [...ids].sort() },
      facets: subscribe ? { $ne: facet } : facet,
      ...living,
      ...(subscribe && { $or: roomy }),
    },
    [
      {
        $set: {
          facets: subscribe
            ? { $concatArrays: ["$facets", [{ $literal: facet }]] }
            : { $filter: { input: "$facets", cond: { $ne: ["$$this", { $literal: facet }] } } },
          version: { $add: ["$version", 1] },
          updatedAt: at,
          outbox: { $concatArrays: [{ $ifNull: ["$outbox", []] }, [fact]] },
        },
      },
    ],
  );
  return modifiedCount;
};
