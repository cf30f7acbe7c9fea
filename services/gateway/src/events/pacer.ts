/** An event is stored a few milliseconds after its hint. */
const minDelayMs = 20;
/** Hints are lost while the bus is disconnected, and a revoked token sends none: reads are never further apart than this. */
const maxDelayMs = 1_000;

/** Waits between two reads: shortly after a hint, then longer and longer. Returns at once when `signal` is aborted. */
export const createPacer = (signal: AbortSignal) => {
  let delay = minDelayMs;
  let wake = () => {};
  const wakeSoon = () => {
    delay = minDelayMs;
    wake();
  };
  signal.addEventListener("abort", wakeSoon, { once: true });
  return {
    wakeSoon,
    wait: (): Promise<void> => {
      if (signal.aborted) return Promise.resolve();
      return new Promise((resolve) => {
        const timer = setTimeout(resolve, delay);
        delay = Math.min(delay * 2, maxDelayMs);
        wake = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    },
  };
};
