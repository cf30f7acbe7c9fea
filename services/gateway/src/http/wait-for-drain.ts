import type { Writable } from "node:stream";

/** Not a failure: the client disconnected or stopped reading, or this gateway stops. */
export const streamEnded = new Error("the stream has ended");

/** Resolves when the client has read what was written; rejects with {@link streamEnded} after `timeoutMs`, or when `signal` is aborted. */
export const waitForDrain = (stream: Writable, timeoutMs: number, signal: AbortSignal): Promise<void> =>
  new Promise((resolve, reject) => {
    const end = (settle: () => void) => {
      clearTimeout(timer);
      stream.off("drain", onDrain);
      signal.removeEventListener("abort", onEnd);
      settle();
    };
    const onDrain = () => end(resolve);
    const onEnd = () => end(() => reject(streamEnded));
    const timer = setTimeout(onEnd, timeoutMs);
    stream.on("drain", onDrain);
    signal.addEventListener("abort", onEnd);
    if (signal.aborted) onEnd();
  });
