const ticksPerTimeout = 40; // a deadline is noticed at most a fortieth of the timeout late

/** Carries the group it is in, so that leaving costs no look-up. */
export type Timed<T> = { group: Set<T> | undefined };

/**
 * One coarse timer for everything that must end after the same time, instead of a timer for each.
 * It runs, and keeps the process alive, only while something waits.
 */
export function createDeadlines<T extends Timed<T>>(
  timeoutMs: number,
  onLate: (late: readonly T[]) => void,
  now = () => performance.now(),
) {
  const tickMs = Math.max(5, timeoutMs / ticksPerTimeout);
  const groups: Array<{ until: number; members: Set<T> }> = []; // ascending: the timeout is the same for all
  let count = 0;
  let timer: NodeJS.Timeout | undefined;

  function tick(): void {
    const time = now();
    for (let group = groups[0]; group !== undefined && group.until <= time; group = groups[0]) {
      groups.shift();
      const late = [...group.members];
      for (const item of late) item.group = undefined;
      count -= late.length;
      if (late.length > 0) onLate(late);
    }
    if (count === 0) stop();
  }

  function stop(): void {
    clearInterval(timer);
    timer = undefined;
  }

  return {
    add(item: T): void {
      const until = now() + timeoutMs + tickMs;
      let group = groups.at(-1);
      if (group === undefined || group.until + tickMs <= until) {
        group = { until, members: new Set() };
        groups.push(group);
      }
      group.members.add(item);
      item.group = group.members;
      count++;
      timer ??= setInterval(tick, tickMs);
    },
    remove(item: T): void {
      if (item.group?.delete(item)) count--;
      item.group = undefined;
    },
    stop,
  };
}
