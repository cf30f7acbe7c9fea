import { type ProjectId, userKey } from "@herald/contracts";
import {
  findBatched,
  findSome,
  guardStore,
  having,
  type IndexSpec,
  indexNames,
  insertMissing,
  projectRows,
} from "@herald/mongo";
import type { Collection, Db } from "mongodb";
import type { Choices } from "../domain/preferences.ts";
import { type DeviceDocument, deviceHints } from "./device-document.ts";

type UserPreferences = {
  /** `<project>/<user key>`. */
  readonly _id: string;
  readonly projectId: ProjectId;
  readonly userId: string;
  readonly choices: Choices;
  /** Grows with every change: a device with a lower one has an older copy. */
  readonly version: number;
  readonly changedAt: Date;
  /** Copied again some time after the change, for logins that began before it, and after a crash. */
  readonly pending?: true;
};

const indexes = {
  list: { fields: { projectId: 1, _id: 1 }, purpose: "list" },
  pending: { fields: { changedAt: 1 }, purpose: "sweep", partial: having("pending") },
} as const satisfies Record<string, IndexSpec>;

const hints = indexNames(indexes);

const idOf = (projectId: ProjectId, userId: string): string => `${projectId}/${userKey(projectId, userId)}`;

/** No request takes longer. */
const lingerMs = 60_000;
const copiedAtATime = 100;

export type UserPreferenceStore = ReturnType<typeof createUserPreferenceStore>;

/** What users have chosen, and its copies in their devices, which expansions read. */
export const createUserPreferenceStore = (db: Db, devices: Collection<DeviceDocument>) => {
  const users: Collection<UserPreferences> = db.collection("userPreferences");
  const findOne = findBatched(users);

  const find = (projectId: ProjectId, userId: string) => findOne({ _id: idOf(projectId, userId), projectId });

  /** Copies a version into the devices of the user that have an older one. Repeatable. */
  const copy = async ({ projectId, userId, choices, version }: UserPreferences): Promise<void> => {
    await devices.updateMany(
      { projectId, userId, userPreferencesVersion: { $not: { $gte: version } } },
      { $set: { userPreferences: choices, userPreferencesVersion: version } },
      { hint: deviceHints.users },
    );
  };

  /** The fields of a device of the user. Undefined fields must not be stored. */
  const copyFor = async (projectId: ProjectId, userId: string | undefined) => {
    const found = userId === undefined ? null : await find(projectId, userId);
    return { userPreferences: found?.choices, userPreferencesVersion: found?.version };
  };

  return guardStore({
    ...projectRows(users, indexes, indexes.list),

    find,

    copyFor,

    /** Call it after a device was written with {@link copyFor}: copies again if the user has changed something meanwhile. */
    compare: async ({
      projectId,
      userId,
      userPreferencesVersion: version,
    }: Pick<DeviceDocument, "projectId" | "userId" | "userPreferencesVersion">): Promise<void> => {
      const found = userId === undefined ? null : await find(projectId, userId);
      if (found && found.version !== version) await copy(found);
    },

    /** Stores what a user has chosen, and copies it. */
    put: async (projectId: ProjectId, userId: string, choices: Choices, changedAt: Date): Promise<void> => {
      const _id = idOf(projectId, userId);
      for (;;) {
        const changed = await users.findOneAndUpdate(
          { _id, projectId },
          { $set: { choices, changedAt, pending: true }, $inc: { version: 1 } },
          { returnDocument: "after" },
        );
        if (changed) return copy(changed);
        const first = { _id, projectId, userId, choices, version: 1, changedAt, pending: true as const };
        if (await insertMissing(users, [first])) return copy(first);
      }
    },

    remove: async (projectId: ProjectId, userId: string): Promise<void> => {
      await users.deleteOne({ _id: idOf(projectId, userId), projectId });
    },

    /** Finishes copies that a crash interrupted or a login overtook. */
    sweep: async (now: Date): Promise<void> => {
      const before = new Date(now.getTime() - lingerMs);
      const filter = { pending: { $exists: true }, changedAt: { $lt: before } } as const;
      for (const one of await findSome(users, filter, { hint: hints.pending, limit: copiedAtATime })) {
        await copy(one);
        await users.updateOne(
          { _id: one._id, projectId: one.projectId, version: one.version },
          { $unset: { pending: 1 } },
        );
      }
    },
  });
};
