import { z } from "zod";
import type { PathProblem } from "../../named.ts";
import { recipientKinds } from "../../recipients.ts";
import { kindOfTarget } from "../../targets.ts";
import { ofDevice } from "./local-time.ts";

const seconds = "must be a whole number of seconds from 60 to 604800 (7 days)";

export const EscalateAfter = z
  .number(seconds)
  .int({ error: seconds, abort: true })
  .min(60, seconds)
  .max(604_800, seconds)
  .meta({
    description:
      'So many seconds after the start, `io.herald.notification.unopened.v1` names the users who have not opened it. Only with targets `user:`, `device:` and `token:`; not with `recipients`, `rollout`, `silent` or `time_zone: "device"`',
    examples: [3_600],
  });

type Fields = {
  readonly escalate_after?: number | undefined;
  readonly targets?: readonly string[] | undefined;
  readonly recipients?: unknown;
  readonly rollout?: unknown;
  readonly silent?: boolean | undefined;
  readonly time_zone?: string | undefined;
};

const kinds: ReadonlySet<string | undefined> = new Set(recipientKinds);

/** What does not go with it. */
export const escalationProblems = (notification: Fields): PathProblem[] => {
  const { escalate_after: after, targets = [], recipients, rollout, silent, time_zone: zone } = notification;
  if (after === undefined) return [];
  const other = targets.find((target) => !kinds.has(kindOfTarget(target)));
  const problems = [
    other !== undefined && "needs targets `user:`, `device:` or `token:` alone",
    recipients !== undefined && "cannot be combined with `recipients`: send to `targets`",
    rollout !== undefined && "cannot be combined with `rollout`, which has no one start",
    zone === ofDevice && 'cannot be combined with `time_zone: "device"`, which has no one start',
    silent === true && "cannot be combined with `silent`: nothing is shown that could be opened",
  ];
  return problems.flatMap((message) => (message ? [{ path: ["escalate_after"], message }] : []));
};
