import {
  erasedUser,
  idTime,
  type NotificationContent,
  type NotificationId,
  type ProjectId,
  userKey,
} from "@herald/contracts";
import { anyExisting, findSome, guardStore } from "@herald/mongo";
import { allHaveFewDevices, userKeysOf } from "@herald/rules";
import type { Collection, Db, Filter, WithId } from "mongodb";
import { rootGeneration } from "../domain/batch.ts";
import { type Erased, erasedKeysOf, eraseTargets, isTargetOf } from "../domain/erase-targets.ts";
import type { Sendable } from "../domain/settle-row.ts";
import { type DeliveryDocument, deliveryCollection, deliveryHints, ownersOf, packNames } from "./delivery-document.ts";
import { type NotificationDocument, notificationCollection, notificationHints } from "./notification-document.ts";
import type { RecipientStore } from "./recipient-store.ts";
import { rowSourceFields } from "./rows.ts";
import type { SmallSendStore } from "./small-send-store.ts";

/** A ledger row, including the owners of its devices, has at most 60 KiB. */
const pageSize = 100;

/** Pages of documents in order of their ids. Each page is a separate query, because documents change between two pages. */
async function* pagesOf<Document extends { _id: string }>(
  collection: Collection<Document>,
  filter: Filter<Document>,
  { hint, projection }: { readonly hint: string; readonly projection?: Readonly<Record<string, 1>> },
): AsyncGenerator<WithId<Document>[]> {
  for (let after = ""; ; ) {
    const rest = { ...filter, _id: { $gt: after } } as Filter<Document>;
    const options = { hint, sort: { _id: 1 }, limit: pageSize, ...(projection && { projection }) } as const;
    const page = await findSome(collection, rest, options);
    yield page;
    const last = page.at(-1);
    if (!last || page.length < pageSize) return;
    after = last._id;
  }
}

/** What of a notification an erasure reads. */
const erasable = {
  projectId: 1,
  content: 1,
  expanded: 1,
  pagesExpanded: 1,
  recipient: 1,
  recipients: 1,
  "rows.users": 1,
} as const;
type Erasable = Omit<WithId<NotificationDocument>, "rows"> & { readonly rows?: readonly RowUsers[] };

/** A larger audience is not one user's. */
const maxBatches = 16;

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

/** The owners of a row's devices. */
type RowUsers = Pick<DeliveryDocument, "users">;

/** Whether all devices of a row had the erased user. */
const isTheirRow = (row: RowUsers, isTheirs: IsTheirs): boolean => {
  const owners = ownersOf(row);
  return owners.length > 0 && owners.every((owner) => owner !== undefined && isTheirs(owner));
};

/** In the place of an erased user's token in rows that wait. It is never sent: registry says first that the device is gone. */
const erasedToken = "https://erased.invalid/";

const withoutUser = (device: Sendable): Sendable => ({
  ...device,
  userId: erasedUser,
  ...(device.values && { values: {} }),
});

const withoutToken = ({ keys: _k, liveToken: _l, ...device }: Sendable): Sendable => ({
  ...device,
  token: erasedToken,
});

/** Removes erased users from notifications and from the ledger. Counts stay. */
export const createUserEraser = (
  db: Db,
  sends: Pick<SmallSendStore, "eraseOwners">,
  recipients: Pick<RecipientStore, "progress">,
) => {
  const notifications = notificationCollection(db);
  const deliveries = deliveryCollection(db);

  /** The first rows of a notification in `deliveries`, one more than are one user's. */
  const rootsOf = (projectId: ProjectId, notificationId: NotificationId): Promise<RowUsers[]> =>
    deliveries
      .find(
        { projectId, notificationId, generation: rootGeneration },
        { hint: deliveryHints.finish, projection: { users: 1 }, limit: maxBatches + 1 },
      )
      .toArray();

  /** Whether a device of a notification belonged to another user when it was sent: devices change hands. */
  const isOfOthers = async ({ _id, projectId, rows }: Erasable, { key }: Erased): Promise<boolean> => {
    const isTheirs = isUserOf(projectId, key);
    const sent = rows ?? (await rootsOf(projectId, _id));
    return sent.some((row) => ownersOf(row).some((owner) => owner !== undefined && !isTheirs(owner)));
  };

  /** `mayBeWhole`: it was for no one else, unless a device had another user. By default its targets decide. */
  const rewrite = async (document: Erasable, erased: Erased, mayBeWhole?: boolean): Promise<void> => {
    const { _id, projectId, expanded } = document;
    const before: NotificationContent = JSON.parse(document.content);
    const wanted = eraseTargets(before, erased, mayBeWhole);
    const isKept = wanted.isErased && (await isOfOthers(document, erased));
    const { content, isErased } = isKept ? eraseTargets(before, erased, false) : wanted;
    const isTheirs = isTargetOf(erased);
    const unmatched = isErased ? [] : expanded?.unmatched.filter((target) => !isTheirs(target));
    await notifications.updateOne(
      // If another erasure has changed the document since, the next pass finds it again.
      { _id, projectId, content: document.content },
      {
        $set: { content: JSON.stringify(content), ...(expanded && { "expanded.unmatched": unmatched }) },
        $pull: { userKeys: { $in: [...erasedKeysOf(erased)] } },
        ...(isErased && { $unset: { tags: "", personal: "" } }),
      },
    );
  };

  const eraseNotifications = async (erased: Erased): Promise<void> => {
    const { projectId, at } = erased;
    const filter = { projectId, userKeys: anyExisting(erasedKeysOf(erased)), acceptedAt: { $lte: at } };
    for await (const page of pagesOf(notifications, filter, { hint: notificationHints.users, projection: erasable }))
      for (const document of page) {
        // Of a list only the sole recipient has a key. One of an upload may have it of lines that were refused.
        const { recipients: listed } = JSON.parse(document.content) as NotificationContent;
        const isSole =
          !listed?.upload || (await recipients.progress(projectId, document._id, 0)).last?.recipients === 1;
        await rewrite(document, erased, listed ? isSole : undefined);
      }
  };

  /** Whether a notification whose devices are all the erased user's was for no one else. */
  const isForNoOther = async (
    { _id, projectId, content, expanded, pagesExpanded = 0 }: Erasable,
    { key }: Erased,
  ): Promise<boolean> => {
    if (expanded === undefined || expanded.lost || expanded.unmatched.length > 0) return false;
    const { targets, recipients: listed } = JSON.parse(content) as NotificationContent;
    if (listed === undefined)
      return allHaveFewDevices(targets) && userKeysOf(projectId, targets).every((one) => one === key);
    if (expanded.list) return expanded.list.unmatched.length === 0;
    return (await recipients.progress(projectId, _id, pagesExpanded)).unmatched === 0;
  };

  const eraseIfTheirs = async (projectId: ProjectId, id: NotificationId, erased: Erased): Promise<void> => {
    const document = await notifications.findOne({ _id: id, projectId }, { projection: erasable });
    if (document && (await isForNoOther(document, erased))) await rewrite(document, erased, true);
  };

  /** Small sends that went to some of the user's devices. */
  const eraseSmall = async (erased: Erased): Promise<void> => {
    const { projectId, at, devices = [] } = erased;
    const theirs = new Set(devices);
    for (const field of ["recipient", "recipients"] as const) {
      const filter = {
        projectId,
        [field]: anyExisting(devices),
        acceptedAt: { $lte: at },
      } as Filter<NotificationDocument>;
      const options = { hint: notificationHints[field], projection: erasable };
      for await (const page of pagesOf(notifications, filter, options))
        for (const document of page) {
          const { recipient, recipients: others = [] } = document;
          const all = [...(recipient ? [recipient] : []), ...others].every((id) => theirs.has(id));
          await rewrite(document, erased, (all && (await isForNoOther(document, erased))) || undefined);
        }
    }
  };

  const eraseRow = async (row: WithId<DeliveryDocument>, isTheirs: IsTheirs): Promise<void> => {
    const users = withoutOwners(ownersOf(row), isTheirs);
    if (users === undefined) return;
    const { _id, projectId, state, devices, child } = row;
    // A row that is being sent needs its tokens.
    const change = (device: Sendable) =>
      state === "started" ? withoutUser(device) : withoutToken(withoutUser(device));
    // `userId` is not cleared: a waiting delivery must detect that the device belongs to another user now.
    const without = (some: readonly Sendable[]): Sendable[] =>
      some.map((device) => (device.userId !== undefined && isTheirs(device.userId) ? change(device) : device));
    if (devices) await deliveries.updateOne({ _id, projectId, state }, { $set: { devices: without(devices) } });
    if (child)
      await deliveries.updateOne({ _id, projectId, state }, { $set: { "child.devices": without(child.devices) } });
    // Last: without its owners, the row is not found again after a crash.
    await deliveries.updateOne({ _id, projectId }, { $set: { users } });
  };

  const eraseNamed = async (erased: Erased): Promise<void> => {
    const { projectId, key, at } = erased;
    const filter = { projectId, named: { $exists: true }, acceptedAt: { $lte: at } } as const;
    const options = { hint: notificationHints.named, projection: { ...rowSourceFields, step: 1 } } as const;
    for await (const page of pagesOf(notifications, filter, options)) {
      const isTheirs = isUserOf(projectId, key);
      for (const document of page) {
        const { _id, rows = [] } = document;
        if (rows.length > 0 && rows.every((row) => isTheirRow(row, isTheirs)))
          await eraseIfTheirs(projectId, _id, erased);
        // The rows of a send that has not ended move to `deliveries`, where they are erased below.
        await sends.eraseOwners(document, (owners) => withoutOwners(owners, isTheirs));
      }
    }
  };

  /** Before the row loses its owners: a crash between the two leaves it to the next pass. */
  const eraseIfAllRowsTheirs = async (
    { projectId, notificationId }: DeliveryDocument,
    isTheirs: IsTheirs,
    erased: Erased,
  ) => {
    const roots = await rootsOf(projectId, notificationId);
    if (roots.length <= maxBatches && roots.every((row) => isTheirRow(row, isTheirs)))
      await eraseIfTheirs(projectId, notificationId, erased);
  };

  const eraseRows = async (erased: Erased): Promise<void> => {
    const { projectId, key, at } = erased;
    const filter = { projectId, users: { $exists: true } };
    for await (const page of pagesOf(deliveries, filter, { hint: deliveryHints.users })) {
      const isTheirs = isUserOf(projectId, key);
      for (const row of page) {
        // Only notifications created before the erasure, which their ids tell: a user who returned keeps later ones.
        if (idTime(row.notificationId) > at) continue;
        if (isTheirRow(row, isTheirs)) await eraseIfAllRowsTheirs(row, isTheirs, erased);
        await eraseRow(row, isTheirs);
      }
    }
  };

  return guardStore({
    /** Erases a user, or some of a user's devices, from all notifications accepted before the erasure, and from their ledgers. Repeatable. */
    erase: async (erased: Erased): Promise<void> => {
      await eraseNotifications(erased);
      if (erased.devices) return eraseSmall(erased);
      await eraseNamed(erased);
      await eraseRows(erased);
    },
  });
};
