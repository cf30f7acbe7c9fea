/** Enough for a percentile; fewer if calls are slow. */
const most = 100;
const fewest = 5;
const forMs = 2_000;

/** The milliseconds of each call, one after another: 100 calls, or as many as fit into two seconds, but at least five. */
export const samplesOf = async (work: (index: number) => Promise<unknown>): Promise<number[]> => {
  const took: number[] = [];
  const end = performance.now() + forMs;
  for (let index = 0; index < most && (index < fewest || performance.now() < end); index++) {
    const begin = performance.now();
    await work(index);
    took.push(performance.now() - begin);
  }
  return took;
};
