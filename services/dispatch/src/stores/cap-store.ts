import { type CapWindow, type NotificationId, type ProjectId, userKey } from "@herald/contracts";
import { HeraldError } from "@herald/kit";
import { anyOf, beginsWith, findByIds, guardStore, inOneCommand, insertNew, removeOldest } from "@herald/mongo";
import type { Collection, Db } from "mongodb";
import type { Erased } from "../domain/erase-targets.ts";

/** The slots of a person, or of a device without a user, for notifications of a kind in one window. */
type CapDocument = {
  /**
   * `<day>/<project>/<subject>/<kind>/<hour, day or week>/<time>`: the day and the time of day in UTC when the window began. The day comes
   * first, so that old documents need no index of their own, which would double the cost of every write.
   */
  _id: string;
  projectId: ProjectId;
  /** The notifications that took them. */
  s: NotificationId[];
};

/** Slots are kept longer than a week, the longest window. */
export const capDays = 8;
const dayMs = 86_400_000;

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

/** Of a time in ISO 8601. */
const dayEnds = "2030-01-31".length;
const timeEnds = "2030-01-31T09:00".length;
const dayOf = (at: Date): string => at.toISOString().slice(0, dayEnds);

const keyOf = ({ projectId, kind, cap, window }: WantedSlots, subject: string): string =>
  [dayOf(window), projectId, subject, kind, cap.per, window.toISOString().slice(dayEnds + 1, timeEnds)].join("/");

/** Each round gives a slot to one of those that want it, or finds it full. */
const maxRounds = 50;

/** Up to this many slots of a notification are taken together with those of others. */
const fewSubjects = 20;

/**
 * Slots of frequency caps. One atomic write takes a slot and names the notification: so a repeat takes none, and two processes cannot
 * both take the last one. No upsert, because DocumentDB loses concurrent ones. No slot is returned.
 */
export const createCapStore = (db: Db) => {
  const caps: Collection<CapDocument> = db.collection("caps");

  type Open = { readonly wanted: WantedSlots; readonly subject: string; readonly key: string };

  const takeFree = ({ projectId, notificationId, cap }: WantedSlots, _id: string | { $in: string[] }) => ({
    filter: { projectId, _id, s: { $ne: notificationId }, [`s.${cap.count - 1}`]: { $exists: false } },
    update: { $push: { s: notificationId } },
  });

  /**
   * True if all of them got a slot, false if perhaps some did. Always in the order of the keys: writers of the same keys in different
   * orders deadlock in FerretDB.
   */
  const update = async (open: readonly Open[]): Promise<boolean> => {
    let taken = 0;
    const few: Open[] = [];
    for (const [wanted, of] of Map.groupBy(open, (one) => one.wanted)) {
      if (of.length <= fewSubjects) few.push(...of);
      else {
        const { filter, update } = takeFree(wanted, anyOf(of.map(({ key }) => key)));
        taken += (await caps.updateMany(filter, update)).matchedCount;
      }
    }
    few.sort(byKey);
    if (few.length > 0)
      taken += (await caps.bulkWrite(few.map(({ wanted, key }) => ({ updateOne: takeFree(wanted, key) }))))
        .matchedCount;
    return taken === open.length;
  };

  const read = async (open: readonly Open[]): Promise<Map<string, CapDocument["s"]>> => {
    const projectId = anyOf(open.map(({ wanted }) => wanted.projectId));
    const keys = new Set(open.map(({ key }) => key));
    const found = await findByIds(caps, keys, { projectId }, { projection: { s: 1 } });
    return new Map(found.map(({ _id, s }) => [_id, s]));
  };

  /** Inserts the documents of subjects without one. Resolves to those that got a slot by it; of several for one key, the first may. */
  const insert = async (open: readonly Open[]): Promise<Set<Open>> => {
    const first = [...new Map(open.toReversed().map((one) => [one.key, one])).values()];
    const refused = await insertNew(
      caps,
      first.map(
        ({ key, wanted: { projectId, notificationId } }): CapDocument => ({ _id: key, projectId, s: [notificationId] }),
      ),
    );
    const others = new Set(refused.map(({ _id }) => _id));
    return new Set(first.filter(({ key }) => !others.has(key)));
  };

  /** What a round reads decides what it writes. What other processes wrote between the two shows the next round. */
  const take = async (all: readonly WantedSlots[]): Promise<ReadonlySet<string>[]> => {
    const slots = new Map(all.map((wanted) => [wanted, new Set<string>()]));
    const hold = ({ wanted, subject }: Open) => slots.get(wanted)?.add(subject);
    let open: Open[] = all.flatMap((wanted) =>
      [...new Set(wanted.subjects)].map((subject) => ({ wanted, subject, key: keyOf(wanted, subject) })),
    );
    for (let round = 0; open.length > 0; round++) {
      if (round === maxRounds)
        throw new HeraldError("database-unavailable", "the counts of frequency caps change too often");
      const found = await read(open);
      const stateOf = ({ key, wanted: { notificationId, cap } }: Open) => {
        const taken = found.get(key);
        if (taken === undefined) return "missing";
        if (taken.includes(notificationId)) return "held";
        return taken.length >= cap.count ? "full" : "free";
      };
      const { held = [], missing = [], free = [] } = Object.groupBy(open, stateOf);
      held.forEach(hold);
      const inserted = missing.length > 0 ? await insert(missing) : new Set<Open>();
      inserted.forEach(hold);
      const gotAll = free.length > 0 && (await update(free));
      if (gotAll) free.forEach(hold);
      open = [...missing.filter((one) => !inserted.has(one)), ...(gotAll ? [] : free)];
    }
    return all.map((wanted) => slots.get(wanted) ?? new Set());
  };

  /** Removes what begins with `prefix` after the day. What is older than the days kept, retention removes within an hour. */
  const removeOfDays = async (projectId: ProjectId, prefix: string, now: Date): Promise<void> => {
    // From tomorrow, for a process whose clock is ahead.
    for (let ago = -1; ago <= capDays + 1; ago++) {
      const day = dayOf(new Date(now.getTime() - ago * dayMs));
      await caps.deleteMany({ projectId, _id: beginsWith(`${day}/${prefix}`) });
    }
  };

  return guardStore({
    /** The subjects that have a slot for the notification. Repeatable: it keeps the slots that it has, and takes no second one. */
    take: inOneCommand<WantedSlots, ReadonlySet<string>>(take, ({ projectId }) => projectId),

    /** Removes the slots of an erased user. */
    erase: ({ projectId, key }: Erased, now: Date): Promise<void> =>
      removeOfDays(projectId, `${projectId}/${key}/`, now),

    removeProject: (projectId: ProjectId, now: Date): Promise<void> => removeOfDays(projectId, `${projectId}/`, now),

    /** Removes a batch of slots whose window began before the day of that time. */
    removeOld: (before: Date) =>
      removeOldest(caps, { _id: { $lt: dayOf(before) } }, { hint: "_id_", sort: { _id: 1 } }),
  });
};
