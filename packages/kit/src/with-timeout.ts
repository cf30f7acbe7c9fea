/** Resolves when `work` has settled, however it did, or after `ms`; true when it was in time. Leaves no timer behind. */
export const withTimeout = (ms: number, work: Promise<unknown>): Promise<boolean> =>
  new Promise((resolve) => {
    const timer = setTimeout(() => resolve(false), ms);
    const end = () => {
      clearTimeout(timer);
      resolve(true);
    };
    work.then(end, end);
  });
