/** Limits concurrency. */
export type Semaphore = {
  /** Takes a slot if one is free. */
  tryAcquire(): boolean;
  /** Waits for a slot, first come, first served. */
  acquire(): Promise<void>;
  release(): void;
  waiting(): number;
};

export const createSemaphore = (limit: number): Semaphore => {
  const waiters: (() => void)[] = [];
  let taken = 0;
  const tryAcquire = () => {
    if (taken >= limit) return false;
    taken++;
    return true;
  };
  return {
    tryAcquire,
    acquire: () => (tryAcquire() ? Promise.resolve() : new Promise((resolve) => waiters.push(resolve))),
    release() {
      // Hands the slot to the first waiter, so that new callers cannot overtake it.
      const next = waiters.shift();
      if (next === undefined) taken--;
      else next();
    },
    waiting: () => waiters.length,
  };
};
