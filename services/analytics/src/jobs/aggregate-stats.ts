import { randomUUID } from "node:crypto";
import { type Logger, type Repeating, repeat } from "@herald/kit";
import { foldParts } from "../domain/aggregate.ts";
import type { Contribution } from "../domain/stats-delta.ts";
import type { RollupStore } from "../stores/rollup-store.ts";
import type { ContributionStore, Fold } from "../stores/stats-delta-store.ts";

/** Statistics are a second behind under load; a fold takes a fraction of one. */
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

type Folded = {
  /** Documents of contributions: 0 when there are none, or another process is at it. */
  readonly documents: number;
  /** Whether there were more than a fold takes. */
  readonly more: boolean;
};
const nothing: Folded = { documents: 0, more: false };

/** Brings contributions into the rollups, each once, whoever dies where. */
const createFold = (contributions: ContributionStore, rollups: RollupStore, now: () => Date) => {
  const me = randomUUID();
  const finish = async ({ number, contributions: ids }: Pick<Fold, "number" | "contributions">): Promise<void> => {
    await rollups.add(number, foldParts(await contributions.get(ids)));
    await contributions.markFolded(ids);
    await contributions.endFold(number);
  };
  return async (): Promise<Folded> => {
    // Before the contributions are looked up: those found then are in no fold up to this one.
    const last = await contributions.fold();
    if (!last.done) {
      if (last.by !== me && now().getTime() - last.at.getTime() < patienceMs) return nothing;
      await finish(last);
      return { documents: last.contributions.length, more: true };
    }
    const found = await contributions.findNotFolded(page);
    const ids = fitting(found);
    if (ids.length === 0) return nothing;
    if (!(await contributions.beginFold(last, { contributions: ids, by: me, at: now() }))) return nothing;
    await finish({ number: last.number + 1, contributions: ids });
    return { documents: ids.length, more: ids.length < found.length || found.length === page };
  };
};

/** One fold. Gives how many documents of contributions it had. */
export type FoldOnce = () => Promise<number>;

export const foldContributions = (...deps: Parameters<typeof createFold>): FoldOnce => {
  const fold = createFold(...deps);
  return async () => (await fold()).documents;
};

/** Stores contributions and has them folded. */
export type CountContributions = (batch: readonly Contribution[]) => Promise<void>;

/**
 * Folds what `count` stores: at once when nothing was folded for a second, else together with all that comes within that second, because
 * a fold costs eight commands however little is in it. Looks every second for what others stored and left.
 */
export const createFolding = (contributions: ContributionStore, rollups: RollupStore, now: () => Date, log: Logger) => {
  const fold = createFold(contributions, rollups, now);
  let foldedAt = Number.NEGATIVE_INFINITY;
  let folding: Repeating | undefined;
  const count: CountContributions = async (batch) => {
    if (batch.length === 0) return;
    await contributions.put(batch);
    if (performance.now() - foldedAt > everyMs) folding?.runNow();
  };
  const begin = (): Repeating => {
    folding = repeat("bring statistics up to date", everyMs, log, async (signal) => {
      for (let more = true; more && !signal.aborted; ) {
        const folded = await fold();
        if (folded.documents > 0) foldedAt = performance.now();
        more = folded.more;
      }
    });
    return folding;
  };
  return { count, begin };
};
