/** Any connection is faster. Who is slower only holds a place that others need. */
export const minBytesPerSecond = 1_024;
/** Long enough for a pause of the client or of its network. */
const windowMs = 60_000;

/**
 * Ends transfers whose other side does next to nothing: less than 1 KiB/s, or `least()` bytes per second, over a minute in which Herald
 * waited for it. Time in which Herald does something else does not count.
 */
export const createSpeedLimit = (tooSlow: () => Error, least = () => minBytesPerSecond) => {
  let waitedMs = 0;
  let bytes = 0;
  return {
    /** Resolves as `waiting` does; `bytesOf` says how many bytes it transferred. Rejects with `tooSlow` when the minute is over. */
    wait: async <Result>(waiting: Promise<Result>, bytesOf: (result: Result) => number): Promise<Result> => {
      let since = performance.now();
      let timer: NodeJS.Timeout | undefined;
      const slow = new Promise<never>((_, reject) => {
        const endWindow = () => {
          if (bytes < (least() * windowMs) / 1_000) return reject(tooSlow());
          waitedMs = 0;
          bytes = 0;
          since = performance.now();
          timer = setTimeout(endWindow, windowMs);
        };
        timer = setTimeout(endWindow, windowMs - waitedMs);
      });
      try {
        const result = await Promise.race([waiting, slow]);
        bytes += bytesOf(result);
        return result;
      } finally {
        clearTimeout(timer);
        waitedMs += performance.now() - since;
      }
    },
  };
};
