import { audienceOfContent, audienceRequests, type Proposal, type SendV1 } from "@herald/contracts";
import { HeraldError, hasCode } from "@herald/kit";
import { authorOf, type CallerOf } from "../auth/caller.ts";
import type { ProjectDirectory } from "../auth/directories.ts";
import type { RequestDeps } from "../deps.ts";
import { type ParsedSend, parsedSend } from "./accept-notification.ts";

type ProposeDeps = RequestDeps & { readonly projects: Pick<ProjectDirectory, "settings"> };

type Addressing = Pick<SendV1, "projectId" | "content" | "recipients">;

/** How many devices a send reaches, estimated; undefined while registry is unavailable, and of an upload. */
const audienceOf = async ({ sendRequest }: RequestDeps, { projectId, content, recipients }: Addressing) => {
  if (recipients) return recipients.reduce((sum, chunk) => sum + chunk.length, 0);
  if (content.recipients) return undefined;
  try {
    return (await sendRequest(audienceRequests.size, { projectId, ...audienceOfContent(content) })).devices;
  } catch (error) {
    if (hasCode(error, "service-unavailable", "database-unavailable", "bus-unavailable")) return undefined;
    throw error;
  }
};

/** A large send as it is published: in a project with a rule of approval, one that may reach more devices is proposed. */
export const propose = async (
  deps: ProposeDeps,
  caller: CallerOf<"project">,
  send: ParsedSend,
): Promise<ParsedSend> => {
  // Not by what this gateway has in memory: after a start it may not have the project's settings yet.
  const { approval: rule } = await deps.projects.settings(caller.projectId);
  if (!rule) return send;
  const devices = await audienceOf(deps, send.command);
  if (devices !== undefined && devices <= rule.devices) return send;
  const proposal: Proposal = {
    limit: rule.devices,
    ...(devices !== undefined && { devices }),
    sender: authorOf(caller),
    ...(caller.owner && { owner: caller.owner }),
  };
  return parsedSend({ ...send.command, proposal });
};

/** @throws HeraldError `approval-required` for a start of a Live Activity on many devices: it would end before anybody agrees */
export const refuseLargeStart = async (deps: ProposeDeps, sends: readonly Addressing[]): Promise<void> => {
  for (const send of sends) {
    const { approval: rule } = await deps.projects.settings(send.projectId);
    if (!rule) return;
    const { devices } = await deps.sendRequest(audienceRequests.size, {
      projectId: send.projectId,
      ...audienceOfContent(send.content),
    });
    if (devices > rule.devices)
      throw new HeraldError(
        "approval-required",
        `activity.targets: about ${devices} devices; more than ${rule.devices} need approval, which an activity cannot wait for`,
      );
  }
};
