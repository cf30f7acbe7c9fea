/// <reference lib="webworker" />
import { type CallProblem, call } from "../call.ts";
import { addOpen, deleteOpen, getOpen, openKeys, type PendingOpen, readState } from "../state.ts";
import type { OpenBody } from "../wire.ts";

declare const self: ServiceWorkerGlobalScope;

/** Stores an open, then sends it: the browser may stop the worker at any time. */
export const reportOpen = async (open: PendingOpen): Promise<void> => {
  await addOpen(open);
  await flushOpens();
};

/**
 * Sends the stored opens, oldest first. Herald counts a repeated open once. After a failure it registers a background sync, so that the
 * browser retries when it is online. Within such a sync `throws` makes the browser retry again.
 */
export const flushOpens = async ({ throws = false } = {}): Promise<void> => {
  try {
    const keys = await openKeys();
    if (keys.length === 0) return;
    const state = await readState();
    // The state contains Herald's address. The next page that starts the kit stores it.
    if (!state) return;
    for (const key of keys) {
      const open = await getOpen(key);
      if (!open) continue;
      const body: OpenBody = { project_id: open.project, token: open.token };
      await call(state.gateway, `PUT notifications/${open.notification}/open`, body).catch((problem: CallProblem) => {
        // Herald refuses an open that is too old or forged: drop it.
        if (problem.retry) throw problem;
      });
      await deleteOpen(key);
    }
  } catch (problem) {
    if (throws) throw problem;
    await (self.registration as { sync?: { register(tag: string): Promise<void> } }).sync
      ?.register("herald")
      .catch(() => undefined);
  }
};
