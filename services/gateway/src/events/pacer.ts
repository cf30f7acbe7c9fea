/** What a hint announces is stored a few milliseconds later. */
const shortestMs = 20;
/** Hints are lost with the connection to the bus; so long a reader waits then, and for the end of a token that was revoked. */
const longestMs = 1_000;

/** Waits between two looks: shortly after a hint, then longer and longer; not at all once `signal` is aborted. */
export const createPacer = (signal: AbortSignal) => {
  let delay = shortestMs;
  let wake = () => {};
  const hurry = () => {
    delay = shortestMs;
    wake();
  };
  signal.addEventListener("abort", hurry, { once: true });
  return {
    hurry,
    wait: (): Promise<void> => {
      if (signal.aborted) return Promise.resolve();
      return new Promise((resolve) => {
        const timer = setTimeout(resolve, delay);
        delay = Math.min(delay * 2, longestMs);
        wake = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    },
  };
};
