/** The end of what is open: whoever closes waits for it, any number of them. */
export type Ending = {
  /** Says that something has ended. */
  readonly ended: () => void;
  /** Resolves when nothing is open any more. What still is after `timeoutMs` is for `giveUp` to end. */
  readonly within: (timeoutMs: number, giveUp: () => void) => Promise<void>;
};

export const createEnding = (isEmpty: () => boolean): Ending => {
  const waiting: (() => void)[] = [];
  return {
    ended: () => {
      if (isEmpty()) for (const resolve of waiting.splice(0)) resolve();
    },
    within: async (timeoutMs, giveUp) => {
      if (isEmpty()) return;
      const deadline = setTimeout(giveUp, timeoutMs);
      await new Promise<void>((resolve) => waiting.push(resolve));
      clearTimeout(deadline);
    },
  };
};
