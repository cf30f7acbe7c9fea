import { handleRequest, type RequestListener } from "@herald/bus";
import { type Preferences, type ProjectId, preferenceRequests } from "@herald/contracts";
import { existing, HeraldError } from "@herald/kit";
import type { z } from "zod";
import type { Deps } from "../deps.ts";
import { choiceProblems, hoursView, packChoices, preferencesView } from "../domain/preferences.ts";
import { deviceNotFound } from "./change-device.ts";

type Owner = z.output<typeof preferenceRequests.get.request>["of"];

type ReadDeps = Pick<Deps, "devices" | "kinds" | "userPreferences">;

const read = async (deps: ReadDeps, projectId: ProjectId, of: Owner): Promise<Preferences> => {
  const declared = await deps.kinds.list(projectId);
  if ("device" in of) {
    const device = existing(await deps.devices.find(projectId, of.device), deviceNotFound);
    return { kinds: preferencesView(declared, device) };
  }
  const choices = (await deps.userPreferences.find(projectId, of.user))?.choices;
  const hours = hoursView(choices);
  return { kinds: preferencesView(declared, { userPreferences: choices }), ...(hours && { quiet_hours: hours }) };
};

export const handlePreferenceRequests = (
  deps: ReadDeps & Pick<Deps, "bus" | "now" | "projects" | "replication">,
): RequestListener[] => {
  const { bus, kinds, devices, projects, userPreferences, replication, now } = deps;
  return [
    handleRequest(bus, preferenceRequests.get, ({ projectId, of }) => read(deps, projectId, of)),

    handleRequest(bus, preferenceRequests.put, async ({ projectId, of, preferences }) => {
      const problems = choiceProblems(await kinds.list(projectId), preferences);
      if (problems.length > 0) throw new HeraldError("validation-failed", problems);
      const choices = packChoices(preferences);
      if ("device" in of) {
        if (!(await devices.setPreferences(projectId, of.device, choices))) throw deviceNotFound();
      } else {
        // Before they are stored: from then on, sends ask for the hours of users.
        if (preferences.quiet_hours && (await projects.setOwnHours(projectId)))
          await replication.replicateRules(projectId);
        await userPreferences.put(projectId, of.user, choices, now());
      }
      return read(deps, projectId, of);
    }),
  ];
};
