/** The events of one kind in one project. */
export type SubjectUsage = {
  readonly subject: string;
  readonly project: string;
  readonly messages: number;
  /** Of one of them, about. */
  readonly bytes: number;
  /** Only those who read events are told by them; statistics, webhooks' messages apart, are not made of them. */
  readonly spare: boolean;
};

/** All but the newest `keep` of a subject go. */
export type Removal = { readonly subject: string; readonly keep: number; readonly spare: boolean };

/** The most that one may keep where all together may keep `target`: those who have less keep all. */
const shareOf = (held: readonly number[], target: number): number => {
  const ascending = held.toSorted((one, other) => one - other);
  let left = target;
  for (const [index, bytes] of ascending.entries()) {
    const equal = left / (ascending.length - index);
    if (bytes > equal) return equal;
    left -= bytes;
  }
  return Number.POSITIVE_INFINITY;
};

const sum = (all: readonly SubjectUsage[]): number => all.reduce((bytes, one) => bytes + one.messages * one.bytes, 0);

/**
 * Which events go so that `target` bytes stay: each project that holds more than its share loses its own oldest, the spare ones
 * first; every other keeps all. A share is not fixed: who is alone may fill everything.
 */
export const planEventRemoval = (held: readonly SubjectUsage[], target: number): Removal[] => {
  const projects = [...Map.groupBy(held, ({ project }) => project).values()];
  const share = shareOf(projects.map(sum), target);
  return projects.flatMap((own) => {
    let excess = sum(own) - share;
    const removals: Removal[] = [];
    // The largest first: few removals, each of many.
    const order = own.toSorted((one, other) => Number(other.spare) - Number(one.spare) || sum([other]) - sum([one]));
    for (const { subject, messages, bytes, spare } of order) {
      if (excess <= 0) break;
      const removed = Math.min(messages, Math.ceil(excess / bytes));
      excess -= removed * bytes;
      removals.push({ subject, keep: messages - removed, spare });
    }
    return removals;
  });
};
