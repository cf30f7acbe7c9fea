import { ownProblem } from "./problem.ts";

/** Longer than a push service on a slow network takes. */
const limitMs = 10_000;

/**
 * What `work` resolves to, or a problem if no answer from the browser within 10 seconds. Some never answer: Chromium behind a firewall that
 * blocks its push service, or a storage that another page blocks. `onLate` bounds what a later answer does.
 */
export const timely = <Value>(
  work: Promise<Value>,
  slug: string,
  onLate?: () => unknown,
  ms = limitMs,
): Promise<Value> =>
  new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      reject(ownProblem(slug, "no answer in time"));
      onLate?.();
    }, ms);
    work.then(resolve, reject).finally(() => clearTimeout(timer));
  });
