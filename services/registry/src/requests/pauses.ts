import { isDeepStrictEqual } from "node:util";
import { handleRequest, type RequestListener } from "@herald/bus";
import { type Installation, projectRequests, type StoredPause } from "@herald/contracts";
import { HeraldError } from "@herald/kit";
import type { Deps } from "../deps.ts";
import { installationRow, type PauseEntry, pauseView } from "../domain/pauses.ts";
import { eventContext } from "../domain/registry-events.ts";
import { projectView } from "./projects.ts";

/** @throws HeraldError `validation-failed` when its end has come already, or cannot be shown. */
const entryOf = ({ by, reason, until }: Omit<StoredPause, "at">, at: Date): PauseEntry => {
  const end = until === undefined ? undefined : new Date(until);
  if (end && (end <= at || end.getUTCFullYear() > 9_999))
    throw new HeraldError("validation-failed", "until: must be in the future, and before the year 10000");
  return { at, by, ...(reason !== undefined && { reason }), ...(end && { until: end }) };
};

/** A repeat, also of a request whose answer was lost, changes nothing and has no second event. */
const repeats = ({ at: _, ...pause }: PauseEntry, stored: PauseEntry | undefined): boolean => {
  const { at: _at, ...known } = stored ?? { at: undefined };
  return isDeepStrictEqual(pause, known);
};

/** Changes are replicated before the reply: dispatch watches them. */
export const handlePauseRequests = ({
  bus,
  projects,
  pauses,
  replication,
  publishSoon,
  now,
}: Pick<Deps, "bus" | "now" | "pauses" | "projects" | "publishSoon" | "replication">): RequestListener[] => {
  const installationView = async (): Promise<Installation> => pauseView(undefined, await pauses.ofAll());
  return [
    handleRequest(bus, projectRequests.pause, async ({ projectId, ...asked }) => {
      const at = now();
      const pause = entryOf(asked, at);
      let project = await projects.get(projectId);
      // Of equal pauses at once, one is a change.
      while (!repeats(pause, project.paused))
        project =
          (await pauses.pause(eventContext(projectId, at), pause, project.paused)) ?? (await projects.get(projectId));
      await replication.replicateRules(projectId);
      publishSoon.project(projectId);
      return projectView(project, undefined);
    }),

    handleRequest(bus, projectRequests.resume, async ({ projectId, by }) => {
      const resumed = await pauses.resume(eventContext(projectId, now()), by);
      const project = resumed ?? (await projects.get(projectId));
      // Also for a repeat, because an earlier attempt may have ended before this.
      await replication.replicateRules(projectId);
      publishSoon.project(projectId);
      return projectView(project, await pauses.ofAll());
    }),

    handleRequest(bus, projectRequests.pauseAll, async (asked) => {
      const pause = entryOf(asked, now());
      if (!repeats(pause, await pauses.ofAll())) await pauses.pauseAll(pause);
      await replication.replicateRules(installationRow);
      return installationView();
    }),

    handleRequest(bus, projectRequests.resumeAll, async () => {
      await pauses.resumeAll();
      await replication.replicateRules(installationRow);
      return installationView();
    }),

    handleRequest(bus, projectRequests.installation, installationView),
  ];
};
