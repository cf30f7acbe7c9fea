import { randomBytes } from "node:crypto";
import {
  type GroupedSend,
  idTime,
  type NotificationId,
  type ProjectId,
  sendGroupOf,
  targetsOfSend,
} from "@herald/contracts";
import {
  anyExisting,
  anyOf,
  beginsWith,
  ensureIndexes,
  findSome,
  guardStore,
  having,
  type IndexSpec,
  indexNames,
  inOneCommand,
  insertBatched,
  projectAfter,
} from "@herald/mongo";
import { personKeysOf } from "@herald/rules";
import type { Collection, Db } from "mongodb";
import { type Erased, erasedKeysOf, eraseFromSend } from "../domain/erase-targets.ts";
import type { Claim } from "./delivery-document.ts";

/** Small sends of one project and one message that wait for their project's turn, before any of their devices is known. */
export type SendGroup = {
  readonly _id: string;
  readonly projectId: ProjectId;
  readonly sends: readonly GroupedSend[];
  /** The message in which they were accepted: they are sent for it, whichever process sends them. */
  readonly claim: Claim;
};

type SendGroupDocument = Omit<SendGroup, "sends"> & {
  /** JSON, because callers choose the keys of content, and a database does not accept every key. */
  sends: string;
  /** How many sends it has. */
  size: number;
  /** Keys of the users, devices and push tokens among their targets; absent: none. */
  userKeys?: string[];
};

/** Sends of a group: one group is sent as one piece of work, at most an eighth of the places of all small sends. */
export const maxParked = 64;

const indexes = {
  /** A project's groups, oldest first: ids begin with the time. */
  list: { fields: { projectId: 1, _id: 1 }, purpose: "list" },
  users: { fields: { projectId: 1, userKeys: 1 }, purpose: "users", partial: having("userKeys") },
} as const satisfies Record<string, IndexSpec>;

const hints = indexNames(indexes);

const targetsOf = (sends: readonly GroupedSend[]): string[] => sends.flatMap(targetsOfSend);

/** More would slow down the database that must send them. */
const maxSummed = 20_000;

/** How many sends of a project wait, and since when. */
export type ProjectBacklog = { readonly projectId: ProjectId; readonly sends: number; readonly since: Date };

const acceptedAt = (groupId: string): Date => idTime(groupId.slice(0, groupId.indexOf("/")));

const toGroup = ({ _id, projectId, sends, claim }: SendGroupDocument): SendGroup => ({
  _id,
  projectId,
  sends: JSON.parse(sends),
  claim,
});

/** The backlogs of small sends: those beyond their project's share, in groups. */
export const createSendGroupStore = (db: Db) => {
  const groups: Collection<SendGroupDocument> = db.collection("sendGroups");
  const insertOne = insertBatched(groups);
  const removeOne = inOneCommand<Pick<SendGroup, "_id" | "projectId">, void>(
    async (removed) => {
      const _id = anyOf(removed.map((one) => one._id));
      await groups.deleteMany({ _id, projectId: anyOf(removed.map(({ projectId }) => projectId)) });
      return removed.map(() => undefined);
    },
    ({ projectId }) => projectId,
  );

  /** The groups that have sends of the group in which a notification was accepted. */
  const withSendsOf = async (projectIds: readonly ProjectId[], id: NotificationId): Promise<SendGroup[]> => {
    const filter = { projectId: anyOf(projectIds), _id: beginsWith(`${sendGroupOf(id)}/`) };
    return (await groups.find(filter, { hint: "_id_" }).toArray()).map(toGroup);
  };

  return guardStore({
    ensureIndexes: () => ensureIndexes(groups, Object.values(indexes)),

    /** Stores up to {@link maxParked} sends of one project, which were accepted in one message. */
    park: async (projectId: ProjectId, sends: readonly GroupedSend[], claim: Claim): Promise<void> => {
      const [first] = sends;
      if (!first) return;
      const userKeys = personKeysOf(projectId, targetsOf(sends));
      // The random part, because a second group of the same message may have to wait later.
      const _id = `${sendGroupOf(first.notificationId)}/${randomBytes(8).toString("base64url")}`;
      await insertOne({
        ...{ _id, projectId, sends: JSON.stringify(sends), size: sends.length, claim },
        ...(userKeys.length > 0 && { userKeys }),
      });
    },

    /** A project's groups after the id `after`, oldest first. */
    read: async (projectId: ProjectId, after: string, limit: number): Promise<SendGroup[]> => {
      const options = { hint: hints.list, sort: { _id: 1 }, limit } as const;
      return (await findSome(groups, { projectId, _id: { $gt: after } }, options)).map(toGroup);
    },

    /** A send that waits. */
    find: async (projectId: ProjectId, id: NotificationId): Promise<GroupedSend | undefined> =>
      (await withSendsOf([projectId], id))
        .flatMap(({ sends }) => sends)
        .find(({ notificationId }) => notificationId === id),

    /** Which of the sends of a message wait. */
    waitingOf: async (sends: readonly GroupedSend[]): Promise<ReadonlySet<NotificationId>> => {
      const [first] = sends;
      if (!first) return new Set();
      const found = await withSendsOf(
        sends.map(({ projectId }) => projectId),
        first.notificationId,
      );
      return new Set(found.flatMap((group) => group.sends.map(({ notificationId }) => notificationId)));
    },

    /** Removes a group. Each of its sends has ended, or continues with messages of its own. */
    remove: removeOne,

    /** How many sends of a project wait, in its first `limit` groups. */
    count: async (projectId: ProjectId, limit: number): Promise<number> => {
      const [found] = await groups
        .aggregate<{ queued: number }>(
          [{ $match: { projectId } }, { $limit: limit }, { $group: { _id: null, queued: { $sum: "$size" } } }],
          { hint: hints.list },
        )
        .toArray();
      return found?.queued ?? 0;
    },

    /** The projects with a backlog, the longest waiting first, at most `limit`. Reads at most {@link maxSummed} groups. */
    backlogs: async (limit: number): Promise<ProjectBacklog[]> => {
      const found = await groups
        .aggregate<{ _id: ProjectId; sends: number; first: string }>([
          { $limit: maxSummed },
          { $group: { _id: "$projectId", sends: { $sum: "$size" }, first: { $min: "$_id" } } },
          { $sort: { first: 1 } },
          { $limit: limit },
        ])
        .toArray();
      return found.map(({ _id, sends, first }) => ({ projectId: _id, sends, since: acceptedAt(first) }));
    },

    /** The first project with a backlog whose id is greater than `projectId`. */
    projectAfter: projectAfter(groups, { hint: hints.list }),

    /** Removes the backlog of a project. */
    removeProject: async (projectId: ProjectId): Promise<void> => {
      await groups.deleteMany({ projectId }, { hint: hints.list });
    },

    /** Erases a user from sends accepted before the erasure. What was sent to no other target loses its content, and matches no device. */
    erase: async (erased: Erased): Promise<void> => {
      const { projectId, at } = erased;
      const filter = { projectId, userKeys: anyExisting(erasedKeysOf(erased)) };
      for await (const document of groups.find(filter, { hint: hints.users })) {
        const sends = toGroup(document).sends.map((send) =>
          new Date(send.acceptedAt) <= at ? eraseFromSend(send, erased) : send,
        );
        const userKeys = personKeysOf(projectId, targetsOf(sends));
        // If another erasure has changed the group since, the next pass finds it again.
        await groups.updateOne(
          { _id: document._id, projectId, sends: document.sends },
          { $set: { sends: JSON.stringify(sends), userKeys } },
        );
      }
    },
  });
};
