/** Waits until nothing is open any more; any number of callers may. */
export function createClosing(isEmpty: () => boolean) {
  const waiting: (() => void)[] = [];
  return {
    /** To be called when something has ended. */
    check(): void {
      if (isEmpty()) for (const resolve of waiting.splice(0)) resolve();
    },
    /** Resolves when nothing is open any more. What still is after `timeoutMs` is for `giveUp` to end. */
    async within(timeoutMs: number, giveUp: () => void): Promise<void> {
      if (isEmpty()) return;
      const deadline = setTimeout(giveUp, timeoutMs);
      await new Promise<void>((resolve) => waiting.push(resolve));
      clearTimeout(deadline);
    },
  };
}
