import { erasedUser, idTime, type ProjectId, userKey } from "@herald/contracts";
import { findSome, guardStore } from "@herald/mongo";
import type { Collection, Db, Filter, WithId } from "mongodb";
import { type Erased, eraseTargets, isTargetOf } from "../domain/erase-targets.ts";
import type { Sendable } from "../domain/settle-row.ts";
import { type DeliveryDocument, deliveryCollection, deliveryHints, ownersOf, packNames } from "./delivery-document.ts";
import { type NotificationDocument, notificationCollection, notificationHints } from "./notification-document.ts";
import type { SmallSendStore } from "./small-send-store.ts";

/** A ledger row, including the owners of its devices, has at most 60 KiB. */
const pageSize = 100;

/** Pages of documents in order of their ids. Each page is a separate query, because documents change between two pages. */
async function* pagesOf<Document extends { _id: string }>(
  collection: Collection<Document>,
  filter: Filter<Document>,
  hint: string,
): AsyncGenerator<WithId<Document>[]> {
  for (let after = ""; ; ) {
    const rest = { ...filter, _id: { $gt: after } } as Filter<Document>;
    const page = await findSome(collection, rest, { hint, sort: { _id: 1 }, limit: pageSize });
    yield page;
    const last = page.at(-1);
    if (!last || page.length < pageSize) return;
    after = last._id;
  }
}

type IsTheirs = (userId: string) => boolean;

/** Tests whether a user has the given key. Hashes each user only once. */
const isUserOf = (projectId: ProjectId, key: string): IsTheirs => {
  const known = new Map<string, boolean>();
  return (userId) => {
    const is = known.get(userId) ?? userKey(projectId, userId) === key;
    known.set(userId, is);
    return is;
  };
};

/** Packed owners without a user. Undefined when the user is none of them. */
const withoutOwners = (owners: readonly (string | undefined)[], isTheirs: IsTheirs): string | undefined => {
  const others = owners.map((owner) => (owner !== undefined && isTheirs(owner) ? undefined : owner));
  return others.some((owner, at) => owner !== owners[at]) ? (packNames(others) ?? "") : undefined;
};

/** Removes erased users from notifications and from the ledger. Counts stay. */
export const createUserEraser = (db: Db, sends: Pick<SmallSendStore, "eraseOwners">) => {
  const notifications = notificationCollection(db);
  const deliveries = deliveryCollection(db);

  const rewrite = async (document: WithId<NotificationDocument>, { projectId, key }: Erased): Promise<void> => {
    const { content, isErased } = eraseTargets(JSON.parse(document.content), { projectId, key });
    const isTheirs = isTargetOf({ projectId, key });
    const { expanded } = document;
    await notifications.updateOne(
      // If another erasure has changed the document since, the next pass finds it again.
      { _id: document._id, projectId, content: document.content },
      {
        $set: {
          content: JSON.stringify(content),
          ...(expanded && { "expanded.unmatched": expanded.unmatched.filter((target) => !isTheirs(target)) }),
        },
        $pull: { userKeys: key },
        ...(isErased && { $unset: { tags: "" } }),
      },
    );
  };

  const eraseNotifications = async (erased: Erased): Promise<void> => {
    const { projectId, key, at } = erased;
    const filter = { projectId, userKeys: key, acceptedAt: { $lte: at } };
    for await (const page of pagesOf(notifications, filter, notificationHints.users))
      for (const document of page) await rewrite(document, erased);
  };

  const eraseRow = async (row: WithId<DeliveryDocument>, isTheirs: IsTheirs): Promise<void> => {
    const users = withoutOwners(ownersOf(row), isTheirs);
    if (users === undefined) return;
    const { _id, projectId, state, devices, child } = row;
    // `userId` is not cleared: a waiting delivery must detect that the device belongs to another user now.
    const without = (some: readonly Sendable[]): Sendable[] =>
      some.map((device) =>
        device.userId !== undefined && isTheirs(device.userId)
          ? { ...device, userId: erasedUser, ...(device.values && { values: {} }) }
          : device,
      );
    await deliveries.updateOne({ _id, projectId }, { $set: { users } });
    if (devices) await deliveries.updateOne({ _id, projectId, state }, { $set: { devices: without(devices) } });
    if (child)
      await deliveries.updateOne({ _id, projectId, state }, { $set: { "child.devices": without(child.devices) } });
  };

  const eraseNamed = async ({ projectId, key, at }: Erased): Promise<void> => {
    const filter = { projectId, named: { $exists: true }, acceptedAt: { $lte: at } } as const;
    for await (const page of pagesOf(notifications, filter, notificationHints.named)) {
      const isTheirs = isUserOf(projectId, key);
      // The rows of a send that has not ended move to `deliveries`, where they are erased below.
      for (const document of page) await sends.eraseOwners(document, (owners) => withoutOwners(owners, isTheirs));
    }
  };

  const eraseRows = async ({ projectId, key, at }: Erased): Promise<void> => {
    const filter = { projectId, users: { $exists: true } };
    for await (const page of pagesOf(deliveries, filter, deliveryHints.users)) {
      const isTheirs = isUserOf(projectId, key);
      // Only notifications created before the erasure, which their ids tell: a user who returned keeps later ones.
      for (const row of page) if (idTime(row.notificationId) <= at) await eraseRow(row, isTheirs);
    }
  };

  return guardStore({
    /** Erases a user from all notifications accepted before the erasure, and from their ledgers. Repeatable. */
    erase: async (erased: Erased): Promise<void> => {
      await eraseNotifications(erased);
      await eraseNamed(erased);
      await eraseRows(erased);
    },
  });
};
