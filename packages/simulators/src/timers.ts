/** Timers that end with their owner: a scripted delay must not keep a stopped simulator alive. */
export function createTimers() {
  const running = new Set<NodeJS.Timeout>();
  return {
    after(ms: number, action: () => void): void {
      const timer = setTimeout(() => {
        running.delete(timer);
        action();
      }, ms);
      running.add(timer);
    },
    clear(): void {
      for (const timer of running) clearTimeout(timer);
      running.clear();
    },
  };
}
