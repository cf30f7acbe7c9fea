import { installation, type ProjectId } from "@herald/contracts";
import { type PeriodicTask, runEvery } from "@herald/kit";
import type { Deps } from "../deps.ts";
import { type PauseScope, pauseOf } from "../project-rules.ts";
import type { NotificationState } from "../stores/notification-document.ts";
import type { Backlog } from "./backlog.ts";
import { type ExpandQueued, sweepProjects } from "./expand.ts";
import type { DueMessages } from "./follow-up.ts";

type ResumeDeps = Pick<
  Deps,
  "deliveries" | "expansions" | "log" | "metrics" | "notifications" | "now" | "rules" | "sendGroups"
> & {
  readonly backlog: Pick<Backlog, "ensureDrain">;
  readonly dueMessages: DueMessages;
  readonly expandQueued: ExpandQueued;
  /** Starts rows that were just made due. */
  readonly sweepDue: () => Promise<void>;
};

/** A crash after a resume, or a process that missed it, leaves rows held for this long at most. */
const sweepEveryMs = 30_000;
const everyMs = 5_000;

/** Continues what waited for the end of a pause. Each step is repeatable, and what fails is found by a sweep. */
export const createResumeSends = (deps: ResumeDeps) => {
  const { deliveries, expansions, notifications, sendGroups, backlog, dueMessages, expandQueued, sweepDue } = deps;
  const { metrics, now, rules, log } = deps;

  const ofProject = async (projectId: ProjectId): Promise<void> => {
    if (pauseOf(rules, projectId)) return;
    await deliveries.resumeHeld({ projectId }, now());
    await expandQueued(projectId);
    await backlog.ensureDrain(projectId);
    await sweepDue();
  };

  /** All projects in which something waits. */
  const ofAll = async (): Promise<void> => {
    const found = [deliveries.heldProjectAfter, expansions.projectAfter, sendGroups.projectAfter];
    for (let projectId = ""; ; ) {
      const each = await Promise.all(found.map((projectAfter) => projectAfter(projectId)));
      const [next] = each.flatMap((one) => one ?? []).sort();
      if (next === undefined) return;
      await ofProject(next);
      projectId = next;
    }
  };

  /** Rows of notifications that are not paused any more. */
  const sweepProject = async (projectId: ProjectId): Promise<void> => {
    if (pauseOf(rules, projectId)) return;
    for (let id = await deliveries.heldAfter(projectId, ""); id; id = await deliveries.heldAfter(projectId, id)) {
      if ((await notifications.getState(projectId, id))?.paused) continue;
      await deliveries.resumeHeld({ projectId, notificationId: id }, now());
    }
  };

  /** What ended, until what waited for it continues: at the start, all that ended while this process did not watch. */
  const ended = new Set<PauseScope>([installation]);
  const continueEnded = async (scope: PauseScope): Promise<void> => {
    await notifications.checkScheduled(scope === installation ? {} : { projectId: scope }, now());
    await (scope === installation ? ofAll() : ofProject(scope));
    ended.delete(scope);
  };

  const measure = async (): Promise<void> => {
    const paused = [...rules.pauses.keys()];
    metrics.pausedSends(paused.filter((scope) => scope !== installation).length, paused.includes(installation));
  };

  return {
    /** A notification that was paused. */
    ofNotification: async (document: NotificationState): Promise<void> => {
      const { _id: notificationId, projectId, step } = document;
      if (pauseOf(rules, projectId)) return;
      await deliveries.resumeHeld({ projectId, notificationId }, now());
      if (step === "scheduled") await dueMessages.publish(document, now());
      if (step === "accepted") await expandQueued(projectId);
      await sweepDue();
    },
    /** Sends of a project, or of all. Never throws. */
    onResumed: async (scope: PauseScope): Promise<void> => {
      ended.add(scope);
      try {
        await continueEnded(scope);
      } catch (err) {
        log.warn({ err, scope }, "could not continue what was paused: it is tried again");
      }
    },
    start: (): PeriodicTask[] => [
      sweepProjects("resume what is held", sweepEveryMs, deliveries.heldProjectAfter, sweepProject, log),
      runEvery("continue what was resumed", everyMs, log, async () => {
        if (rules.loading) return;
        for (const scope of ended) await continueEnded(scope);
      }),
      runEvery("measure pauses", everyMs, log, measure),
    ],
  };
};
