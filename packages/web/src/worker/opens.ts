/// <reference lib="webworker" />
import { sendOpens } from "../opens.ts";
import { addOpen, type PendingOpen } from "../state.ts";

declare const self: ServiceWorkerGlobalScope;

/** Stores an open, then sends it: the browser may stop the worker at any time. */
export const reportOpen = async (open: PendingOpen): Promise<void> => {
  await addOpen(open);
  await flushOpens();
};

/**
 * Sends the stored opens. After a failure it registers a background sync, so that the browser retries when it is online. Within such a sync
 * `throws` makes the browser retry again.
 */
export const flushOpens = async ({ throws = false } = {}): Promise<void> => {
  try {
    await sendOpens();
  } catch (problem) {
    if (throws) throw problem;
    await (self.registration as { sync?: { register(tag: string): Promise<void> } }).sync
      ?.register("herald")
      .catch(() => undefined);
  }
};
