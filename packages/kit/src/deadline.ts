/** Until when a caller waits. Measured by this process alone, so that clocks of several machines need not agree. */
export type Deadline = {
  /** Milliseconds left, 0 when it has passed. */
  remainingMs(): number;
  /** Aborted when it has passed. Made when it is first looked at: most work is over long before. */
  readonly signal: AbortSignal;
};

/** A deadline so many milliseconds from now. */
export const createDeadline = (ms: number): Deadline => {
  const at = performance.now() + ms;
  const remainingMs = () => Math.max(0, at - performance.now());
  let signal: AbortSignal | undefined;
  return {
    remainingMs,
    get signal() {
      signal ??= AbortSignal.timeout(Math.ceil(remainingMs()));
      return signal;
    },
  };
};
