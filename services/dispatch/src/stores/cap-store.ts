import { type CapWindow, type NotificationId, type ProjectId, userKey } from "@herald/contracts";
import { HeraldError } from "@herald/kit";
import {
  anyOf,
  beginsWith,
  ensureIndexes,
  findByIds,
  guardStore,
  type IndexSpec,
  indexNames,
  inOneCommand,
  insertNew,
  removeOldest,
} from "@herald/mongo";
import type { Collection, Db } from "mongodb";
import type { Erased } from "../domain/erase-targets.ts";

/** How often a person, or a device without a user, got notifications of a kind in the present window. */
type CapDocument = {
  /** `<project>/<subject>/<kind>/<window>`. */
  _id: string;
  projectId: ProjectId;
  /** The start of the window. */
  w: Date;
  /** How many slots are taken … */
  n: number;
  /** … and by which notifications. */
  s: NotificationId[];
};

const indexes = {
  window: { fields: { w: 1 }, purpose: "retention" },
} as const satisfies Record<string, IndexSpec>;

const hints = indexNames(indexes);

/** The slots that a notification wants: one for each subject. */
export type WantedSlots = {
  readonly projectId: ProjectId;
  readonly notificationId: NotificationId;
  readonly kind: string;
  readonly cap: { readonly count: number; readonly per: CapWindow };
  /** The start of the present window. */
  readonly window: Date;
  readonly subjects: readonly string[];
};

/** The user of a device, of all whose devices a notification takes one slot; otherwise the device. */
export const subjectOf = (projectId: ProjectId, { id, userId }: { id: string; userId?: string | undefined }): string =>
  userId === undefined ? id : userKey(projectId, userId);

const byKey = (one: { readonly key: string }, other: { readonly key: string }): number =>
  one.key < other.key ? -1 : 1;

const keyOf = ({ projectId, kind, cap }: WantedSlots, subject: string): string =>
  `${projectId}/${subject}/${kind}/${cap.per}`;

/** Each round gives a slot to one of those that want it, or finds it full. */
const maxRounds = 50;

/** Up to this many slots of a notification are taken together with those of others. */
const fewSubjects = 20;

/**
 * Slots of frequency caps. One atomic update takes a slot and names the notification: so a repeat takes none, and two processes cannot
 * both take the last one. No upsert, because DocumentDB loses concurrent ones. No slot is returned.
 */
export const createCapStore = (db: Db) => {
  const caps: Collection<CapDocument> = db.collection("caps");

  type Open = { readonly wanted: WantedSlots; readonly subject: string; readonly key: string };

  const takeFree = ({ projectId, notificationId, cap, window }: WantedSlots, _id: string | { $in: string[] }) => ({
    filter: { projectId, _id, w: { $gte: window }, n: { $lt: cap.count }, s: { $ne: notificationId } },
    update: { $inc: { n: 1 }, $push: { s: notificationId } },
  });

  /** Begins the window, with the first slot taken. */
  const begin = ({ projectId, notificationId, window }: WantedSlots, _id: string | { $in: string[] }) => ({
    filter: { projectId, _id, w: { $lt: window } },
    update: { $set: { w: window, n: 1, s: [notificationId] } },
  });

  /** Always in the order of the keys: writers of the same keys in different orders deadlock in FerretDB. */
  const update = async (open: readonly Open[], updateOf: typeof takeFree | typeof begin): Promise<void> => {
    const few: Open[] = [];
    for (const [wanted, of] of Map.groupBy(open, (one) => one.wanted)) {
      if (of.length <= fewSubjects) few.push(...of);
      else {
        const { filter, update } = updateOf(wanted, anyOf(of.map(({ key }) => key)));
        await caps.updateMany(filter, update);
      }
    }
    few.sort(byKey);
    if (few.length > 0) await caps.bulkWrite(few.map(({ wanted, key }) => ({ updateOne: updateOf(wanted, key) })));
  };

  const read = async (open: readonly Open[]): Promise<Map<string, CapDocument>> => {
    const projectId = anyOf(open.map(({ wanted }) => wanted.projectId));
    const found = await findByIds(caps, new Set(open.map(({ key }) => key)), { projectId });
    return new Map(found.map((document) => [document._id, document]));
  };

  /** Inserts the documents of subjects without one. Resolves to those that got a slot by it; of several for one key, the first may. */
  const insert = async (open: readonly Open[]): Promise<Open[]> => {
    const first = [...new Map(open.toReversed().map((one) => [one.key, one])).values()];
    const refused = await insertNew(
      caps,
      first.map(
        ({ key, wanted: { projectId, notificationId, window } }): CapDocument => ({
          ...{ _id: key, projectId, w: window, n: 1, s: [notificationId] },
        }),
      ),
    );
    const others = new Set(refused.map(({ _id }) => _id));
    return first.filter(({ key }) => !others.has(key));
  };

  const take = async (all: readonly WantedSlots[]): Promise<ReadonlySet<string>[]> => {
    const slots = new Map(all.map((wanted) => [wanted, new Set<string>()]));
    const hold = ({ wanted, subject }: Open) => slots.get(wanted)?.add(subject);
    let open: Open[] = all.flatMap((wanted) =>
      [...new Set(wanted.subjects)].map((subject) => ({ wanted, subject, key: keyOf(wanted, subject) })),
    );
    for (let round = 0; open.length > 0; round++) {
      if (round === maxRounds)
        throw new HeraldError("database-unavailable", "the counts of frequency caps change too often");
      await update(open, takeFree);
      const found = await read(open);
      const stateOf = ({ key, wanted: { notificationId, cap, window } }: Open) => {
        const document = found.get(key);
        if (document === undefined) return "missing";
        if (document.w < window) return "past";
        if (document.s.includes(notificationId)) return "held";
        // Otherwise another process began the window after the update.
        return document.n >= cap.count ? "full" : "free";
      };
      const { held = [], missing = [], past = [], free = [] } = Object.groupBy(open, stateOf);
      held.forEach(hold);
      const inserted = missing.length > 0 ? await insert(missing) : [];
      inserted.forEach(hold);
      if (past.length > 0) await update(past, begin);
      open = [...missing.filter((one) => !inserted.includes(one)), ...past, ...free];
    }
    return all.map((wanted) => slots.get(wanted) ?? new Set());
  };

  return guardStore({
    ensureIndexes: () => ensureIndexes(caps, Object.values(indexes)),

    /** The subjects that have a slot for the notification. Repeatable: it keeps the slots that it has, and takes no second one. */
    take: inOneCommand<WantedSlots, ReadonlySet<string>>(take, ({ projectId }) => projectId),

    /** Removes the counts of an erased user. */
    erase: async ({ projectId, key }: Erased): Promise<void> => {
      await caps.deleteMany({ projectId, _id: beginsWith(`${projectId}/${key}/`) });
    },

    removeProject: async (projectId: ProjectId): Promise<void> => {
      await caps.deleteMany({ projectId, _id: beginsWith(`${projectId}/`) });
    },

    /** Removes a batch of counts whose window began before the time. */
    removeOld: (before: Date) =>
      removeOldest(caps, { w: { $lt: before } }, { hint: hints.window, sort: indexes.window.fields }),
  });
};
