import { type CallProblem, call } from "./call.ts";
import { deleteOpen, getOpen, openKeys, readState } from "./state.ts";
import type { OpenBody } from "./wire.ts";

/**
 * Sends the stored opens to Herald, oldest first. Herald counts a repeated open once, so that a page and the worker may both send it. Throws
 * the problem of the first open that must wait.
 */
export const sendOpens = async (): Promise<void> => {
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
};
