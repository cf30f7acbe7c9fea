type Waiting = { readonly order: number; readonly done: boolean };

/** Who waits for a stream, in the order of their arrival, also when they come back to be sent again. */
export function createRequestQueue<T extends Waiting>() {
  let fresh: Array<T | undefined> = []; // ascending, taken from `next` on; what was taken is let go of
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
    /** Drops requests that were settled while they waited, so that a long outage does not fill the memory. */
    removeDone(): void {
      fresh = fresh.slice(next).filter((item) => !item?.done);
      next = 0;
      returned = returned.filter(({ done }) => !done);
    },
  };
}
