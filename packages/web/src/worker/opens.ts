/// <reference lib="webworker" />
import { call, type Problem } from "../call.ts";
import { addOpen, deleteOpen, getOpen, type Open, openKeys, readState } from "../state.ts";
import type { OpenBody } from "../wire.ts";

declare const self: ServiceWorkerGlobalScope;

/** Stored before it is sent: the worker may end at any time. */
export const reportOpen = async (open: Open): Promise<void> => {
  await addOpen(open);
  await flushOpens();
};

/**
 * Sends the opens that Herald has not taken, oldest first. Herald counts a repeat once. The browser is asked to try again when it is
 * online; `throws` tells a browser that does so that it should once more.
 */
export const flushOpens = async ({ throws = false } = {}): Promise<void> => {
  try {
    const keys = await openKeys();
    if (keys.length === 0) return;
    const state = await readState();
    // Without it Herald's address is unknown: the next page that starts the kit stores it.
    if (!state) return;
    for (const key of keys) {
      const open = await getOpen(key);
      if (!open) continue;
      const body: OpenBody = { project_id: open.project, token: open.token };
      await call(state.gateway, `PUT notifications/${open.notification}/open`, body).catch((problem: Problem) => {
        // One that Herald refuses is too old or forged: it never will be taken.
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
