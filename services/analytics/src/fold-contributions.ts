import { randomUUID } from "node:crypto";
import { type Logger, type Repeating, repeat } from "@herald/kit";
import { foldParts } from "./domain/fold-parts.ts";
import type { ContributionStore, Fold } from "./stores/contribution-store.ts";
import type { RollupStore } from "./stores/rollup-store.ts";

/** Statistics are at most 10 s behind; a fold takes a fraction of a second. */
const everyMs = 1_000;
/** Another process that has begun a fold gets so long before this one ends it in its place: both at once is harmless, and waste. */
const patienceMs = 4_000;
/** A document has the contributions of up to 500 messages, mostly of one project; of as many projects it has one each. */
const page = 500;
/** About as many rollups are written, in a second or less; a document that has more by itself is folded alone. */
const maxParts = 2_000;

/** The first of some documents that together have no more parts than a fold takes. */
const fitting = (found: readonly { readonly _id: string; readonly size?: number }[]): string[] => {
  let parts = 0;
  return found
    .filter(({ size = 1 }, index) => {
      parts += size;
      return index === 0 || parts <= maxParts;
    })
    .map(({ _id }) => _id);
};

/** Brings contributions into the rollups, each once, whoever dies where. */
export const foldContributions = (contributions: ContributionStore, rollups: RollupStore, now: () => Date) => {
  const me = randomUUID();
  const finish = async ({ number, contributions: ids }: Pick<Fold, "number" | "contributions">): Promise<void> => {
    await rollups.add(number, foldParts(await contributions.get(ids)));
    await contributions.markFolded(ids);
    await contributions.endFold(number);
  };
  /** One fold. Gives how many documents of contributions it had: 0 when there are none, or another process is at it. */
  return async (): Promise<number> => {
    // Before the contributions are looked up: those found then are in no fold up to this one.
    const last = await contributions.fold();
    if (!last.done) {
      if (last.by !== me && now().getTime() - last.at.getTime() < patienceMs) return 0;
      await finish(last);
      return last.contributions.length;
    }
    const ids = fitting(await contributions.findNotFolded(page));
    if (ids.length === 0) return 0;
    if (!(await contributions.beginFold(last, { contributions: ids, by: me, at: now() }))) return 0;
    await finish({ number: last.number + 1, contributions: ids });
    return ids.length;
  };
};

export type FoldOnce = ReturnType<typeof foldContributions>;

/** Folds every second until all is in the rollups. */
export const keepFolding = (foldOnce: FoldOnce, log: Logger): Repeating =>
  repeat("bring statistics up to date", everyMs, log, async (signal) => {
    while (!signal.aborted && (await foldOnce()) > 0);
  });
