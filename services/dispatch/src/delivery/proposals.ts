import type { Deps } from "../deps.ts";
import type { NotificationState, ShownNotification } from "../stores/notification-document.ts";
import type { Decision } from "../stores/notification-steps.ts";
import type { ExpandQueued } from "./expand.ts";
import type { ExpansionSteps } from "./expansions.ts";
import type { DueMessages } from "./follow-up.ts";

type ProposalDeps = Pick<Deps, "notifications" | "now" | "outbox" | "recipients"> & {
  readonly dueMessages: DueMessages;
  readonly expandQueued: ExpandQueued;
  readonly expansionSteps: Pick<ExpansionSteps, "planOf">;
};

/** Sends that wait for a second person. */
export const createProposals = (deps: ProposalDeps) => {
  const { notifications, recipients, outbox, dueMessages, expandQueued, expansionSteps, now } = deps;

  /** Sends what was proposed, now or at its time: what it had to live begins then. False when it has changed since it was read. */
  const release = async (document: ShownNotification, decision: Decision): Promise<boolean> => {
    const { _id, projectId, content, expansions, approval, acceptedAt, sendAt } = document;
    if (!approval) return false;
    const planned = (sendAt ?? acceptedAt).getTime();
    const begins = Math.max(planned, decision.at.getTime());
    const plan = await expansionSteps.planOf({
      ...{ projectId, notificationId: _id, content, acceptedAt: new Date(begins).toISOString() },
      ...(expansions?.local && { local: expansions.local }),
    });
    const expiresAt = new Date(approval.ends.getTime() + begins - planned);
    if (!(await notifications.approve(document, { ...decision, expansions: plan, expiresAt }))) return false;
    await outbox.flushNotification(document);
    const known = await notifications.getState(projectId, _id);
    if (known?.step === "scheduled") await dueMessages.schedule(known, known.nextAt);
    else await expandQueued(projectId);
    return true;
  };

  /** Cancels what was proposed. False when it has changed since it was read. */
  const reject = async (document: NotificationState, decision: Decision): Promise<boolean> => {
    const written = await notifications.reject(document, decision);
    if (!written) return false;
    if (document.listed) await recipients.removeValues(document.projectId, document._id);
    await outbox.publishEnd(written);
    return true;
  };

  return {
    release,
    reject,

    /** Cancels it if nobody decided in time. */
    expire: async (document: NotificationState): Promise<void> => {
      if (document.approval && document.approval.expiresAt <= now()) await reject(document, { at: now() });
    },

    /** Its upload is complete: it is sent if it has so few recipients, and proposed otherwise. Repeatable. */
    uploaded: async (document: ShownNotification, lines: number): Promise<void> => {
      const { approval } = document;
      if (!approval) return;
      if (lines <= approval.limit) await release(document, { at: now() });
      else if (await notifications.estimate(document, lines, now())) await outbox.flushNotification(document);
    },
  };
};

export type Proposals = ReturnType<typeof createProposals>;
