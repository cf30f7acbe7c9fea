/** The 99th percentile of the latency of `ask` in ms, called one after another while `during` runs. Only answers with 200 count. */
export const latencyDuring = async (
  ask: () => Promise<{ status: number }>,
  during: () => Promise<unknown>,
): Promise<number> => {
  let running = true;
  const times: number[] = [];
  const watching = (async () => {
    while (running) {
      const begin = performance.now();
      const { status } = await ask();
      if (status === 200) times.push(performance.now() - begin);
    }
  })();
  await during();
  running = false;
  await watching;
  const sorted = times.toSorted((a, b) => a - b);
  return Math.round((sorted[Math.floor(sorted.length * 0.99)] ?? 0) * 10) / 10;
};
