import {
  erasedTarget,
  erasedUser,
  idTime,
  type NotificationId,
  type ProjectId,
  userKey,
  usersOf,
} from "@herald/contracts";
import { guardStore } from "@herald/mongo";
import type { Db, WithId } from "mongodb";
import type { Sendable } from "../domain/settle-batch.ts";
import { type DeliveryDocument, deliveryCollection, deliveryHints, ownersOf, packOwners } from "./delivery-document.ts";
import { type NotificationDocument, notificationCollection, notificationHints } from "./notification-document.ts";
import type { SmallSendStore } from "./small-send-store.ts";

type Erased = { readonly projectId: ProjectId; readonly key: string; readonly at: Date };

const notificationsAtATime = 100;
/** With their owners: some 60 KiB each at most. */
const rowsAtATime = 100;

type IsTheirs = (userId: string) => boolean;

/** Whether a user of some rows is the one of a key; each is hashed once. */
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
    const kept = targets.every((target) => target === erasedTarget) ? { title: "[erased]" } : content;
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
      },
    );
  };

  const eraseNotifications = async (erased: Erased): Promise<void> => {
    const { projectId, key, at } = erased;
    for (let after = "" as NotificationId; ; ) {
      const found = await notifications
        .find(
          { projectId, userKeys: key, _id: { $gt: after }, acceptedAt: { $lte: at } },
          { hint: notificationHints.users },
        )
        .sort({ _id: 1 })
        .limit(notificationsAtATime)
        .toArray();
      for (const document of found) await rewrite(document, erased);
      const last = found.at(-1);
      if (!last || found.length < notificationsAtATime) return;
      after = last._id;
    }
  };

  const eraseRow = async (row: WithId<DeliveryDocument>, isTheirs: IsTheirs): Promise<void> => {
    const owners = ownersOf(row);
    if (!owners.some((owner) => owner !== undefined && isTheirs(owner))) return;
    const { _id, projectId, state, devices, child } = row;
    // Not the user of nobody: what waits must find that it was for somebody else.
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
    for (let after = "" as NotificationId; ; ) {
      const found = await notifications
        .find(
          { projectId, named: { $exists: true }, _id: { $gt: after }, acceptedAt: { $lte: at } },
          { hint: notificationHints.named },
        )
        .sort({ _id: 1 })
        .limit(notificationsAtATime)
        .toArray();
      const isTheirs = isUserOf(projectId, key);
      for (const document of found) await eraseEmbedded(document, isTheirs);
      const last = found.at(-1);
      if (!last || found.length < notificationsAtATime) return;
      after = last._id;
    }
  };

  const eraseRows = async ({ projectId, key, at }: Erased): Promise<void> => {
    for (let after = ""; ; ) {
      const found = await deliveries
        .find({ projectId, users: { $exists: true }, _id: { $gt: after } }, { hint: deliveryHints.users })
        .sort({ _id: 1 })
        .limit(rowsAtATime)
        .toArray();
      // Ids tell when a notification was made: what a user got who came back is theirs to keep.
      const isTheirs = isUserOf(projectId, key);
      for (const row of found) if (idTime(row.notificationId) <= at) await eraseRow(row, isTheirs);
      const last = found.at(-1);
      if (!last || found.length < rowsAtATime) return;
      after = last._id;
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
