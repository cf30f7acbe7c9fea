import type { ProjectId, ProjectLimit } from "@herald/contracts";
import { createShares, HeraldError } from "@herald/kit";
import { isProject, type ShareOwner } from "../auth/caller.ts";
import { dryRunSeconds, quotaSeconds, type RateLimits, windowSeconds } from "../auth/rate-limits.ts";
import type { LimitsOfProject } from "../limits-of-project.ts";

type Streams = { readonly openOf: (projectId: ProjectId) => number };

type Deps = {
  readonly limitsOf: LimitsOfProject;
  readonly limits: Pick<RateLimits, "usedBy">;
  /** Undefined when dispatch does not answer. */
  readonly countQueued: (projectId: ProjectId) => Promise<number | undefined>;
  readonly eventStreams: Streams;
  readonly exportStreams: Streams;
};

/** Reads a project's limits and their current use. Throws bus-unavailable. */
export const createProjectLimits =
  ({ limitsOf, limits, countQueued, eventStreams, exportStreams }: Deps) =>
  async (
    projectId: ProjectId,
    /** Registry's count and default limit of its devices. */
    quota: { readonly devices: number; readonly limit: number },
  ): Promise<ProjectLimit[]> => {
    const [used, queued] = await Promise.all([limits.usedBy(projectId), countQueued(projectId)]);
    const inGateway = (
      name: Exclude<ProjectLimit["name"], "devices">,
      description: string,
      rest: Partial<ProjectLimit> = {},
    ): ProjectLimit => ({
      name,
      description,
      limit: limitsOf.whole(projectId, name),
      default: limitsOf.defaultOf(projectId, name),
      counted_by: "gateway",
      ...rest,
    });
    const inWindow = { seconds: windowSeconds, variable: "HERALD_GATEWAY_LIMIT_PROJECT" };
    const forAll = { counted_by: "installation" } as const;
    return [
      inGateway("token", "Requests with one project token: half of the project's", inWindow),
      inGateway("project", "Requests with all tokens of the project", { ...inWindow, used: used.requests }),
      inGateway("device", "Requests with the credential of one device: a hundredth", inWindow),
      inGateway("sends", "Notifications; dry runs do not count", {
        variable: "HERALD_GATEWAY_QUOTA_SENDS",
        seconds: quotaSeconds,
        used: used.sends,
      }),
      inGateway("dry-runs", "Dry runs, and previews of templates", { seconds: dryRunSeconds, used: used.dryRuns }),
      inGateway("queued", "Notifications that are accepted and not started", {
        variable: "HERALD_GATEWAY_QUOTA_QUEUED",
        ...forAll,
        ...(queued !== undefined && { used: queued }),
      }),
      inGateway("queued-bytes", "Bytes of the same notifications", forAll),
      inGateway("event-streams", "Open event streams", { used: eventStreams.openOf(projectId) }),
      inGateway("exports", "Exports that run", { used: exportStreams.openOf(projectId) }),
      {
        name: "devices",
        description: "Devices, inactive ones included",
        limit: limitsOf.own(projectId)?.devices ?? quota.limit,
        default: quota.limit,
        used: quota.devices,
        counted_by: "installation",
        variable: "HERALD_REGISTRY_QUOTA_DEVICES",
      },
    ];
  };

/** Long enough for the gateway to detect a broken connection. */
const retryAfterSeconds = 5;

/** Places of a project or of an operator, and of all together. */
export type SlotLimits = { readonly perProject: (owner: ShareOwner) => number; readonly total: number };

/**
 * Shares the places for streams, imports or exports between projects, so that a new project finds one; see `createShares`. `acquire` throws
 * rate-limited, or returns a function that frees the slot once.
 */
export const createSlots = ({ perProject, total }: SlotLimits, what: "streams" | "imports" | "exports") => {
  const full = (message: string) => new HeraldError("rate-limited", `${what}: ${message}`, { retryAfterSeconds });
  const shares = createShares(total);
  return {
    openOf: (projectId: ProjectId): number => shares.of(projectId),
    acquire: (owner: ShareOwner): (() => void) => {
      const who = isProject(owner) ? "a project" : "an operator";
      const most = perProject(owner);
      if (shares.of(owner) >= most) throw full(`${who} may have at most ${most} open here`);
      if (shares.free() === 0) throw full(`this gateway has ${total} open, its limit; close one, or try again later`);
      if (!shares.has(owner, 1))
        throw full(`the last of ${total} places here are for projects that have none; close one, or try again later`);
      shares.take(owner, 1);
      let released = false;
      return () => {
        if (released) return;
        released = true;
        shares.give(owner, 1);
      };
    },
  };
};
