import { type CapWindow, type NotificationId, type ProjectId, userKey } from "@herald/contracts";
import { HeraldError, LRUCache } from "@herald/kit";
import { anyOf, beginsWith, findByIds, guardStore, inOneCommand, insertNew, removeOldest } from "@herald/mongo";
import type { Collection, Db } from "mongodb";
import type { Erased } from "../domain/erase-targets.ts";

/** One of the slots of a person, or of a device without a user, for notifications of a kind in one window. */
type CapDocument = {
  /**
   * `<day>/<project>/<subject>/<kind>/<hour, day or week>/<time>/<slot>`: the day and the time of day in UTC when the window began. The day
   * comes first, so that old documents need no index of their own, which would double the cost of every write. Slots count from 0.
   */
  _id: string;
  projectId: ProjectId;
  /** Which took it. */
  notificationId: NotificationId;
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

/** Of a time in ISO 8601. */
const dayEnds = "2030-01-31".length;
const timeEnds = "2030-01-31T09:00".length;
const dayOf = (at: Date): string => at.toISOString().slice(0, dayEnds);

/** The parts of a slot's id before and after the subject. */
const keyParts = ({ projectId, kind, cap, window }: WantedSlots) =>
  [`${dayOf(window)}/${projectId}`, `${kind}/${cap.per}/${window.toISOString().slice(dayEnds + 1, timeEnds)}`] as const;

/** More than the rounds of the largest cap: each gives a subject's next slot to one that wants it. */
const maxRounds = 200;
/** How many slots of each subject the first round reads of a window that is not known. Caps are mostly small; each further part is larger. */
const firstSlots = 4;
/** Fewer subjects of a notification say nothing about most people of the window. */
const manySubjects = 100;
/** Windows of kinds of which a process knows how many slots of most people are taken. */
const maxWindows = 10_000;

/**
 * Slots of frequency caps. One insert takes a slot and names the notification: so two processes cannot both take it. Slots are taken in
 * their order, so a repeat meets the one that it has before a free one. No upsert, because DocumentDB loses concurrent ones; no update,
 * which costs PostgreSQL twice an insert. No slot is returned.
 */
export const createCapStore = (db: Db) => {
  const caps: Collection<CapDocument> = db.collection("caps");

  /** A slot that is wanted. All before `from` are taken by others. */
  type Open = {
    readonly wanted: WantedSlots;
    readonly subject: string;
    /** The id of a slot, without its number. */
    readonly key: string;
    /** What the subjects of a kind and window have in common. */
    readonly window: string;
    readonly from: number;
    /** The slots from there that are read together. None: the first slot is probably free, and is taken without a look. */
    readonly ids: readonly string[];
  };

  const openAt = (one: Omit<Open, "ids">, count: number): Open => {
    const { key, from, wanted } = one;
    const some = Math.max(0, Math.min(count, wanted.cap.count - from));
    return { ...one, ids: Array.from({ length: some }, (_, at) => `${key}/${from + at}`) };
  };

  const read = async (open: readonly Open[]): Promise<Map<string, NotificationId>> => {
    const ids = new Set(open.flatMap((one) => one.ids));
    if (ids.size === 0) return new Map();
    const projectId = anyOf(open.map(({ wanted }) => wanted.projectId));
    const found = await findByIds(caps, ids, { projectId }, { projection: { notificationId: 1 } });
    return new Map(found.map(({ _id, notificationId }) => [_id, notificationId]));
  };

  /** Resolves to those whose slot was free. Of several notifications for one slot, the first may take it, for all that want it for it. */
  const insert = async (free: ReadonlyMap<Open, string>): Promise<Set<Open>> => {
    const documents = new Map<string, CapDocument>();
    for (const [{ wanted }, _id] of free) {
      const { projectId, notificationId } = wanted;
      if (!documents.has(_id)) documents.set(_id, { _id, projectId, notificationId });
    }
    for (const { _id } of await insertNew(caps, [...documents.values()])) documents.delete(_id);
    const took = ([{ wanted }, _id]: [Open, string]) => documents.get(_id)?.notificationId === wanted.notificationId;
    return new Set([...free].filter(took).map(([one]) => one));
  };

  const isLarge = ({ subjects }: WantedSlots): boolean => subjects.length >= manySubjects;

  /**
   * How many slots of a window a large send reads first, by the slots that were taken of those that one asked about last: one more than most
   * have. An id that is not needed costs PostgreSQL 3 µs, and none is read while every first slot is free.
   */
  const toRead = new LRUCache<string, number>({ max: maxWindows });

  const openAll = (all: readonly WantedSlots[]): Open[] =>
    all.flatMap((wanted) => {
      const [before, after] = keyParts(wanted);
      const window = `${before}/${after}`;
      const count = isLarge(wanted) ? (toRead.get(window) ?? firstSlots) : firstSlots;
      return [...new Set(wanted.subjects)].map((subject) =>
        openAt({ wanted, subject, key: `${before}/${subject}/${after}`, window, from: 0 }, count),
      );
    });

  const learn = (open: readonly Open[], taken: ReadonlyMap<string, unknown>, refused: ReadonlySet<Open>): void => {
    const takenOf = (one: Open): number =>
      one.ids.length === 0 ? Number(refused.has(one)) : one.ids.filter((id) => taken.has(id)).length;
    const some = open.filter(({ wanted }) => isLarge(wanted));
    for (const [window, asked] of Map.groupBy(some, (one) => one.window)) {
      const mean = asked.reduce((sum, one) => sum + takenOf(one), 0) / asked.length;
      toRead.set(window, mean === 0 ? 0 : Math.round(mean) + 1);
    }
  };

  /** What a round reads decides what it inserts. What other processes took between the two shows the next round. */
  const take = async (all: readonly WantedSlots[]): Promise<ReadonlySet<string>[]> => {
    const slots = new Map(all.map((wanted) => [wanted, new Set<string>()]));
    const hold = ({ wanted, subject }: Open) => slots.get(wanted)?.add(subject);
    let open = openAll(all);
    for (let round = 0; open.length > 0; round++) {
      if (round === maxRounds)
        throw new HeraldError("database-unavailable", "the counts of frequency caps change too often");
      const taken = await read(open);
      const free = new Map<Open, string>();
      const full: Open[] = [];
      for (const one of open) {
        const { key, from, ids, wanted } = one;
        if (ids.some((id) => taken.get(id) === wanted.notificationId)) hold(one);
        else {
          const next = ids.length === 0 ? `${key}/${from}` : ids.find((id) => !taken.has(id));
          if (next === undefined) full.push(one);
          else free.set(one, next);
        }
      }
      const inserted = free.size > 0 ? await insert(free) : new Set<Open>();
      inserted.forEach(hold);
      const refused = [...free.keys()].filter((one) => !inserted.has(one));
      if (round === 0) learn(open, taken, new Set(refused));
      open = [
        ...refused.map((one) => openAt(one, Math.max(one.ids.length, firstSlots))),
        ...full
          .map((one) => openAt({ ...one, from: one.from + one.ids.length }, one.from + one.ids.length + firstSlots))
          .filter(({ ids }) => ids.length > 0),
      ];
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
