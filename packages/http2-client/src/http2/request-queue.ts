type Waiting = { readonly order: number; readonly done: boolean };

/** Requests that wait for a stream, in order of arrival. A request that is sent again keeps its place. */
export function createRequestQueue<T extends Waiting>() {
  let fresh: Array<T | undefined> = []; // ascending, taken from `next` on; taken items become undefined
  let next = 0;
  let returned: T[] = []; // descending, taken from the end; all older than `fresh`

  return {
    size: () => fresh.length - next + returned.length,
    add(item: T): void {
      fresh.push(item);
    },
    requeue(item: T): void {
      let low = 0;
      for (let high = returned.length; low < high; ) {
        const middle = (low + high) >>> 1;
        if ((returned[middle] as T).order > item.order) low = middle + 1;
        else high = middle;
      }
      returned.splice(low, 0, item);
    },
    take(): T | undefined {
      for (let item = returned.pop(); item !== undefined; item = returned.pop()) if (!item.done) return item;
      while (next < fresh.length) {
        const item = fresh[next] as T;
        fresh[next++] = undefined;
        if (next === fresh.length || (next >= 1_024 && next * 2 >= fresh.length)) {
          fresh = next === fresh.length ? [] : fresh.slice(next);
          next = 0;
        }
        if (!item.done) return item;
      }
      return undefined;
    },
    /** Drops requests that ended while they waited, so that a long outage does not fill the memory. */
    removeDone(): void {
      fresh = fresh.slice(next).filter((item) => !item?.done);
      next = 0;
      returned = returned.filter(({ done }) => !done);
    },
  };
}

const ticksPerTimeout = 40; // a deadline is noticed at most a fortieth of the timeout late

/** An item knows its group, so removing it needs no search. */
export type Timed<T> = { group: Set<T> | undefined };

/**
 * One coarse timer for all items with the same timeout, instead of a timer for each.
 * It runs, and keeps the process alive, only while an item waits.
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
