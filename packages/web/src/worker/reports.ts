/// <reference lib="webworker" />
import { sendReports } from "../reports.ts";
import { addReport, type PendingReport } from "../state.ts";

declare const self: ServiceWorkerGlobalScope;

export const ignore = () => undefined;

/** What a report names: the `data` of a shown notification. */
type Shown = { readonly notification_id: string; readonly project_id: string; readonly token: string };

/** Stores a report, then sends it within `seconds`: the browser may stop the worker at any time, and the next flush sends it. */
export const report = async (
  verb: PendingReport["verb"],
  { notification_id, project_id, token }: Shown,
  { button, seconds = 0 }: { readonly button?: string; readonly seconds?: number } = {},
): Promise<void> => {
  const about = { notification: notification_id, project: project_id, token };
  await addReport({ ...about, verb, at: Date.now(), button });
  // All browsers get a broadcast at the same moment.
  if (seconds > 0) await new Promise((resolve) => setTimeout(resolve, Math.random() * seconds * 1_000));
  await flushReports();
};

/**
 * Sends the stored reports. After a failure it registers a background sync, so that the browser retries when it is online. Within such a
 * sync `throws` makes the browser retry again.
 */
export const flushReports = async ({ throws = false } = {}): Promise<void> => {
  try {
    await sendReports();
  } catch (problem) {
    if (throws) throw problem;
    await (self.registration as { sync?: { register(tag: string): Promise<void> } }).sync
      ?.register("herald")
      .catch(ignore);
  }
};
