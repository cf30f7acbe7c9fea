import { erasedTarget, erasedUser, idTime, type ProjectId, userKey, usersOf } from "@herald/contracts";
import { guardStore } from "@herald/mongo";
import type { Collection, Db, Filter, WithId } from "mongodb";
import type { Sendable } from "../domain/settle-batch.ts";
import { type DeliveryDocument, deliveryCollection, deliveryHints, ownersOf, packOwners } from "./delivery-document.ts";
import { type NotificationDocument, notificationCollection, notificationHints } from "./notification-document.ts";
import type { SmallSendStore } from "./small-send-store.ts";

type Erased = { readonly projectId: ProjectId; readonly key: string; readonly at: Date };

/** A row of the ledger has 60 KiB at most, with the owners of its devices. */
const pageSize = 100;

/** The documents of a filter by their ids, page after page. Each page is a query of its own: documents change between two. */
async function* pagesOf<Document extends { _id: string }>(
  collection: Collection<Document>,
  filter: Filter<Document>,
  hint: string,
): AsyncGenerator<WithId<Document>[]> {
  for (let after = ""; ; ) {
    const page = await collection
      .find({ ...filter, _id: { $gt: after } } as Filter<Document>, { hint })
      .sort({ _id: 1 })
      .limit(pageSize)
      .toArray();
    yield page;
    const last = page.at(-1);
    if (!last || page.length < pageSize) return;
    after = last._id;
  }
}

type IsTheirs = (userId: string) => boolean;

/** Whether a user of a page is the one of a key; each is hashed once. */
const isUserOf = (projectId: ProjectId, key: string): IsTheirs => {
  const known = new Map<string, boolean>();
  return (userId) => {
    const is = known.get(userId) ?? userKey(projectId, userId) === key;
    known.set(userId, is);
    return is;
  };
};

const withoutOwners = (owners: readonly (string | undefined)[], isTheirs: IsTheirs): string =>
  packOwners(owners.map((owner) => (owner !== undefined && isTheirs(owner) ? undefined : owner))) ?? "";

/** Removes erased users from notifications and from the ledger. Counts stay. */
export const createUserEraser = (db: Db, { moveToDeliveries }: Pick<SmallSendStore, "moveToDeliveries">) => {
  const notifications = notificationCollection(db);
  const deliveries = deliveryCollection(db);

  const rewrite = async (document: WithId<NotificationDocument>, { projectId, key }: Erased): Promise<void> => {
    const content = JSON.parse(document.content) as { targets: string[] };
    const isTheirs = (target: string) => usersOf([target]).some((userId) => userKey(projectId, userId) === key);
    const targets = content.targets.map((target) => (isTheirs(target) ? erasedTarget : target));
    // What was said to one person goes with that person.
    const isErased = targets.every((target) => target === erasedTarget);
    const kept = isErased ? { title: "[erased]" } : content;
    const { expanded } = document;
    await notifications.updateOne(
      // Another erasure may have changed it meanwhile: then the next pass finds it again.
      { _id: document._id, projectId, content: document.content },
      {
        $set: {
          content: JSON.stringify({ ...kept, targets }),
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
    const owners = ownersOf(row);
    if (!owners.some((owner) => owner !== undefined && isTheirs(owner))) return;
    const { _id, projectId, state, devices, child } = row;
    // Not cleared: a waiting delivery must find that it was meant for another user.
    const without = (some: readonly Sendable[]): Sendable[] =>
      some.map((device) =>
        device.userId !== undefined && isTheirs(device.userId) ? { ...device, userId: erasedUser } : device,
      );
    await deliveries.updateOne({ _id, projectId }, { $set: { users: withoutOwners(owners, isTheirs) } });
    if (devices) await deliveries.updateOne({ _id, projectId, state }, { $set: { devices: without(devices) } });
    if (child)
      await deliveries.updateOne({ _id, projectId, state }, { $set: { "child.devices": without(child.devices) } });
  };

  /** One that is being sent, or waits for that, gets its rows where those of large sends are, and those are looked at after all of these. */
  const eraseEmbedded = async (document: WithId<NotificationDocument>, isTheirs: IsTheirs): Promise<void> => {
    const { _id, projectId, rows = [] } = document;
    if (document.sending || (document.queued && !document.final)) return moveToDeliveries(projectId, _id);
    const changes = rows.flatMap((row, at): [string, string][] => {
      const owners = ownersOf(row);
      return owners.some((owner) => owner !== undefined && isTheirs(owner))
        ? [[`rows.${at}.users`, withoutOwners(owners, isTheirs)]]
        : [];
    });
    if (changes.length > 0) await notifications.updateOne({ _id, projectId }, { $set: Object.fromEntries(changes) });
  };

  const eraseNamed = async ({ projectId, key, at }: Erased): Promise<void> => {
    const filter = { projectId, named: { $exists: true }, acceptedAt: { $lte: at } } as const;
    for await (const page of pagesOf(notifications, filter, notificationHints.named)) {
      const isTheirs = isUserOf(projectId, key);
      for (const document of page) await eraseEmbedded(document, isTheirs);
    }
  };

  const eraseRows = async ({ projectId, key, at }: Erased): Promise<void> => {
    const filter = { projectId, users: { $exists: true } };
    for await (const page of pagesOf(deliveries, filter, deliveryHints.users)) {
      const isTheirs = isUserOf(projectId, key);
      // Ids tell when a notification was made: what a user got who came back is theirs to keep.
      for (const row of page) if (idTime(row.notificationId) <= at) await eraseRow(row, isTheirs);
    }
  };

  return guardStore({
    /** Of what was accepted before the erasure. Repeatable. */
    erase: async (erased: Erased): Promise<void> => {
      await eraseNotifications(erased);
      await eraseNamed(erased);
      await eraseRows(erased);
    },
  });
};
