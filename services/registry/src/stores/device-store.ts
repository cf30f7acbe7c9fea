import {
  type DeviceId,
  type OutboxEvent,
  type Platform,
  type ProjectId,
  pushTokenHash,
  type Served,
} from "@herald/contracts";
import {
  anyExisting,
  anyOf,
  byIndex,
  type Counts,
  deadlineOptions,
  findBatched,
  findByIds,
  findSome,
  guardStore,
  indexName,
  inOneCommand,
  isDuplicateKey,
  projectRows,
  type RemovedBatch,
  removeOldest,
  updateBatched,
  withinDeadline,
} from "@herald/mongo";
import type { Collection, Db, Filter } from "mongodb";
import type { DeviceState } from "../domain/device-state.ts";
import { topicFacet } from "../domain/facets.ts";
import { maxPerInstallation } from "../domain/installations.ts";
import type { Choices } from "../domain/preferences.ts";
import { type EventContext, registryEvent, type TopicRow } from "../domain/registry-events.ts";
import { recordOpened, recordSeen, retireDevice, retireStale } from "./device-activity.ts";
import { type DeviceDocument, deviceIndexes, stateFields } from "./device-document.ts";
import { changeSubscriptions, fullFor } from "./device-subscriptions.ts";
import { insertDevices } from "./insert-devices.ts";
import { listDevices, listUsers } from "./list-devices.ts";
import type { PendingEvents } from "./pending-events.ts";
import { projectCollection } from "./project-store.ts";
import { createZoneList } from "./project-zones.ts";
import { notDeleted } from "./tombstones.ts";
import { createUserPreferenceStore, type UserPreferenceStore } from "./user-preference-store.ts";

export type DeviceStore = ReturnType<typeof createDeviceStore>;

export const deviceCollection = (db: Db): Collection<DeviceDocument> => db.collection<DeviceDocument>("devices");

const platforms: readonly Platform[] = ["ios", "android", "web"];

type Holding = Served & { readonly projectId: ProjectId; readonly tokenHash: string };

type Installed = { readonly projectId: ProjectId; readonly key: string };

/** A platform has at most this many providers. */
const maxProviders = 2;

/** Sets the fields, and removes those that are undefined: the driver does not set them. */
const setAndUnset = (fields: Readonly<Record<string, unknown>>) => {
  const absent = Object.entries(fields).filter(([, value]) => value === undefined);
  return {
    $set: fields,
    ...(absent.length > 0 && { $unset: Object.fromEntries(absent.map(([field]) => [field, ""])) }),
  };
};

export const createDeviceStore = (
  db: Db,
  counts: Counts,
  pending: Pick<PendingEvents, "add" | "settle">,
  userPreferences: Pick<UserPreferenceStore, "copyFor" | "compare"> = createUserPreferenceStore(
    db,
    deviceCollection(db),
  ),
) => {
  const devices = deviceCollection(db);
  const listed = createZoneList(projectCollection(db));
  const updateOne = updateBatched(devices);
  const findDevice = findBatched(devices);
  const findHolders = async (asked: readonly Holding[]): Promise<(DeviceDocument | undefined)[]> => {
    const some = <Field extends keyof Holding>(field: Field) => anyOf(asked.map((one) => one[field]));
    const found = await devices
      .find(
        {
          projectId: some("projectId"),
          platform: some("platform"),
          tokenHash: anyExisting(asked.map(({ tokenHash }) => tokenHash)),
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
  /** For each one, how many active devices its installation has, and how many of the ones before it are of the same. */
  const countInstalled = inOneCommand(async (asked: readonly Installed[]): Promise<number[]> => {
    const found = await findSome(
      devices,
      {
        projectId: anyOf(asked.map(({ projectId }) => projectId)),
        installationKey: anyExisting(asked.map(({ key }) => key)),
        status: "active",
      },
      {
        hint: indexName(deviceIndexes.installation),
        projection: { projectId: 1, installationKey: 1 },
        limit: asked.length * maxPerInstallation,
      },
    );
    const counts = new Map<string, number>();
    const count = ({ projectId, key }: Installed): number => {
      const before = counts.get(`${projectId}/${key}`) ?? 0;
      counts.set(`${projectId}/${key}`, before + 1);
      return before;
    };
    for (const { projectId, installationKey: key = "" } of found) count({ projectId, key });
    return asked.map(count);
  });

  return guardStore({
    ...projectRows(devices, deviceIndexes, deviceIndexes.list),

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

    /**
     * How many active devices an installation has; more than that if several requests of the same moment ask, so that together they do
     * not exceed a limit.
     */
    countInstalled: (projectId: ProjectId, key: string): Promise<number> => countInstalled({ projectId, key }),

    /** At most one device for each platform and provider. */
    findHolders: (projectId: ProjectId, token: string, on: readonly Platform[] = platforms) => {
      const filter = { projectId, platform: { $in: [...on] }, tokenHash: pushTokenHash(token) };
      return devices.find(filter, { hint: indexName(deviceIndexes.token) }).toArray();
    },

    /** The device that has this token of a push type. */
    findByFurtherToken: async (projectId: ProjectId, hash: string): Promise<DeviceDocument | undefined> => {
      const filter = { projectId, "tokens.hash": anyExisting([hash]) };
      return (await devices.findOne(filter, { hint: indexName(deviceIndexes.furtherToken) })) ?? undefined;
    },

    ...insertDevices(devices, { pending, listed, userPreferences }),

    /** Stores the time of registrations that changed nothing, many in one command. */
    seen: recordSeen(devices, ["lastSeenAt", "tokenUpdatedAt"]),

    /** The same for requests that an app sends without its push token. */
    active: recordSeen(devices, ["lastSeenAt"]),

    opened: recordOpened(devices),

    ...retireStale(devices),

    /** "conflict": the device has changed since `before`; "token-in-use": another device has the token. */
    change: async (
      before: DeviceDocument,
      state: DeviceState,
      write: { at: Date; events: OutboxEvent[]; credentialHash?: string },
    ): Promise<DeviceDocument | "conflict" | "token-in-use"> => {
      const { _id, projectId, version } = before;
      const { at, events, credentialHash = before.credentialHash } = write;
      await listed([{ projectId, facets: state.facets }]);
      const isLogin = state.userId !== before.userId;
      const inactiveAt = state.status === "inactive" ? (before.inactiveAt ?? at) : undefined;
      const fields = {
        ...stateFields(state, at),
        inactiveAt,
        credentialHash,
        version: version + 1,
        ...(isLogin && (await userPreferences.copyFor(projectId, state.userId))),
        ...(before.doubtedAt && state.tokenUpdatedAt > before.tokenUpdatedAt && { doubtedAt: undefined }),
      };
      const update = {
        ...setAndUnset(fields),
        ...(events.length > 0 ? { $push: { outbox: { $each: events } } } : {}),
      } as Parameters<typeof updateOne>[2];
      const after: DeviceDocument = { ...before, ...fields, metadata: state.metadata, identifiers: state.identifiers };
      const written = async (): Promise<DeviceDocument> => {
        if (isLogin) await userPreferences.compare(after);
        return after;
      };
      // Without a new token no unique index is involved, so the update may share a command with others.
      if (state.token === before.token && state.tokens === before.tokens && before.tokenHash !== undefined)
        return (await updateOne({ _id, projectId }, { version, ...notDeleted }, update)) === "updated"
          ? written()
          : "conflict";
      try {
        const { matchedCount } = await devices.updateOne({ projectId, _id, version, ...notDeleted }, update);
        return matchedCount === 0 ? "conflict" : written();
      } catch (error) {
        if (isDuplicateKey(error)) return "token-in-use";
        throw error;
      }
    },

    /** False when the project has no such device. */
    setPreferences: async (projectId: ProjectId, id: DeviceId, preferences: Choices): Promise<boolean> => {
      const { matchedCount } = await devices.updateOne(
        { projectId, _id: id, ...notDeleted },
        { $set: { preferences } },
      );
      return matchedCount > 0;
    },

    retire: retireDevice(devices),

    /** Leaves a tombstone without token and data until its event is published. False if no device has this id and, if given, `userId`. */
    remove: async (context: EventContext, id: DeviceId, userId?: string): Promise<boolean> => {
      const { projectId, at } = context;
      const { modifiedCount } = await devices.updateOne(
        { projectId, _id: id, ...notDeleted, ...(userId !== undefined && { userId }) },
        {
          $set: { deletedAt: at, metadata: {}, identifiers: {}, facets: [], token: "", credentialHash: "" },
          $unset: {
            status: "",
            tokenHash: "",
            app: "",
            tokens: "",
            keys: "",
            vapidKeyId: "",
            locale: "",
            capabilities: "",
            timeZone: "",
            preferences: "",
            userPreferences: "",
            userPreferencesVersion: "",
            userId: "",
            identifiedAt: "",
            userClaimed: "",
            userTokenIat: "",
            installationId: "",
            installationBy: "",
            installationKey: "",
          },
          $inc: { version: 1 },
          $push: { outbox: registryEvent(context, "DeviceDeletedV1", id, { device_id: id }) },
        },
      );
      return modifiedCount > 0;
    },

    /** Removes a batch of tombstones that are older than `before` and whose events are published. */
    removeTombstones: async (before: Date): Promise<RemovedBatch> => {
      const old = { deletedAt: { $exists: true, $lt: before }, outbox: { $exists: false } };
      return removeOldest(devices, old, byIndex(deviceIndexes.tombstone));
    },

    list: listDevices(devices, counts),

    /** The devices of these ids, with the fields that decide whether a push may be sent. */
    findRecipients: (
      projectId: ProjectId,
      ids: readonly DeviceId[],
    ): Promise<Pick<DeviceDocument, "_id" | "status" | "userId" | "preferences" | "userPreferences">[]> =>
      findByIds(
        devices,
        ids,
        { projectId, ...notDeleted },
        { projection: { status: 1, userId: 1, preferences: 1, userPreferences: 1 } },
      ),

    listUsers: listUsers(devices),

    /** The active devices among these ids, unsorted. */
    findActive: (projectId: ProjectId, ids: readonly DeviceId[]): Promise<DeviceDocument[]> =>
      findByIds(devices, ids, { projectId, status: "active" }, deadlineOptions()),

    /** Up to `limit` of a user's devices, oldest first. A tombstone has no user. */
    ofUser: (projectId: ProjectId, userId: string, limit: number): Promise<DeviceDocument[]> =>
      findSome(devices, { projectId, userId }, { hint: indexName(deviceIndexes.users), sort: { _id: 1 }, limit }),

    /** The ids and push tokens of a user's devices. */
    tokensOfUser: (
      projectId: ProjectId,
      userId: string,
      limit: number,
    ): Promise<Pick<DeviceDocument, "_id" | "token">[]> =>
      findSome(
        devices,
        { projectId, userId },
        { hint: indexName(deviceIndexes.users), sort: { _id: 1 }, limit, projection: { token: 1 } },
      ),

    countOfUser: (projectId: ProjectId, userId: string): Promise<number> =>
      devices.countDocuments({ projectId, userId }, { hint: indexName(deviceIndexes.users) }),

    countUpTo: (projectId: ProjectId, limit: number): Promise<number> =>
      devices.countDocuments({ projectId, ...notDeleted }, { hint: indexName(deviceIndexes.list), limit }),

    count: (projectId: ProjectId): Promise<number> =>
      counts.count({ collection: devices, filter: { projectId, ...notDeleted }, hint: indexName(deviceIndexes.list) }),

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
      const rows = await findSome(devices, filter, { hint, limit, projection: { _id: 1 } });
      // Sorted: concurrent writers in different orders could wait for each other.
      const ids = rows.map(({ _id }) => _id).sort();
      if (ids.length > 0)
        await devices.updateMany(
          { ...filter, _id: { $in: ids } },
          { $pull: { facets: filter.facets }, $inc: { version: 1 } },
        );
      return ids.length;
    },
  });
};
