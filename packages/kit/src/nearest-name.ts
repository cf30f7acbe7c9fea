/** The number of letters to add, drop, change or swap with a neighbour to turn one text into the other. */
const distance = (from: string, to: string): number => {
  let beforeLast: number[] = [];
  let last = Array.from({ length: to.length + 1 }, (_, index) => index);
  for (let row = 1; row <= from.length; row++) {
    const current = [row];
    for (let column = 1; column <= to.length; column++) {
      const same = from[row - 1] === to[column - 1];
      let best = Math.min(
        (last[column] ?? 0) + 1,
        (current[column - 1] ?? 0) + 1,
        (last[column - 1] ?? 0) + (same ? 0 : 1),
      );
      if (row > 1 && column > 1 && from[row - 1] === to[column - 2] && from[row - 2] === to[column - 1])
        best = Math.min(best, (beforeLast[column - 2] ?? 0) + 1);
      current.push(best);
    }
    beforeLast = last;
    last = current;
  }
  return last[to.length] ?? 0;
};

/** Longer names are hardly typos of a known one, and the search costs the product of the lengths. */
const longest = 64;

/** The known name that is closest to a mistyped one; undefined if none is close enough. */
export const nearestName = (
  name: string,
  known: Iterable<string>,
  max = Math.max(1, Math.floor(name.length / 3)),
): string | undefined => {
  if (name.length > longest) return undefined;
  let nearest: string | undefined;
  let nearestDistance = max + 1;
  for (const candidate of known) {
    if (Math.abs(candidate.length - name.length) >= nearestDistance) continue;
    const far = distance(name.toLowerCase(), candidate.toLowerCase());
    if (far < nearestDistance) {
      nearest = candidate;
      nearestDistance = far;
    }
  }
  return nearest;
};
