import { call } from "./call.ts";
import type { CallProblem } from "./problem.ts";
import { deleteReport, getReport, readState, reportKeys } from "./state.ts";
import type { ReportBody } from "./wire.ts";

/**
 * Sends the stored reports to Herald, oldest first. Herald counts a repeated report once, so that a page and the worker may both send it.
 * Resolves to the problem of a report that Herald refused, and throws the problem of the first report that must wait.
 */
export const sendReports = async (): Promise<CallProblem | undefined> => {
  const keys = await reportKeys();
  if (keys.length === 0) return;
  const state = await readState();
  // The state contains Herald's address. The next page that starts the kit stores it.
  if (!state) return;
  let refused: CallProblem | undefined;
  for (const key of keys) {
    const report = await getReport(key);
    if (!report) continue;
    const { notification, project, token, verb, at, button } = report;
    // A clock that was set back must not make it refuse the report.
    const ago = Math.max(0, Math.floor((Date.now() - at) / 1_000));
    const body: ReportBody = { project_id: project, token, ago, button };
    await call(state.gateway, `PUT notifications/${notification}/${verb}`, body).catch((problem: CallProblem) => {
      // Herald refuses a report that is too old or forged: drop it.
      if (problem.retry) throw problem;
      refused = problem;
    });
    await deleteReport(key);
  }
  return refused;
};
