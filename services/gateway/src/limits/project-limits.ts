import type { ProjectId, ProjectLimit } from "@herald/contracts";
import { createShares, HeraldError } from "@herald/kit";
import type { ShareOwner } from "../auth/caller.ts";
import { dryRunSeconds, quotaSeconds, type RateLimits, windowSeconds } from "../auth/rate-limits.ts";
import type { GatewayConfig } from "../config.ts";
import { type FixedLimits, requestLimits } from "../fixed-limits.ts";

type Streams = { readonly openOf: (projectId: ProjectId) => number };

type Deps = {
  readonly config: GatewayConfig;
  readonly fixed: FixedLimits;
  readonly limits: Pick<RateLimits, "usedBy">;
  /** Undefined when dispatch does not answer. */
  readonly countQueued: (projectId: ProjectId) => Promise<number | undefined>;
  readonly eventStreams: Streams;
  readonly exportStreams: Streams;
};

export type ReadProjectLimits = ReturnType<typeof createProjectLimits>;

/** Reads a project's limits and their current use. Throws bus-unavailable. */
export const createProjectLimits =
  ({ config, fixed, limits, countQueued, eventStreams, exportStreams }: Deps) =>
  async (
    projectId: ProjectId,
    /** Registry's count and limit of its devices. */
    quota: { readonly devices: number; readonly limit: number },
  ): Promise<ProjectLimit[]> => {
    const [used, queued] = await Promise.all([limits.usedBy(projectId), countQueued(projectId)]);
    const inGateway = (
      name: ProjectLimit["name"],
      limit: number,
      description: string,
      rest: Partial<ProjectLimit> = {},
    ): ProjectLimit => ({ name, description, limit, counted_by: "gateway", ...rest });
    const requests = requestLimits(config.HERALD_GATEWAY_LIMIT_PROJECT);
    const inWindow = { seconds: windowSeconds, variable: "HERALD_GATEWAY_LIMIT_PROJECT" };
    const forAll = { counted_by: "installation" } as const;
    return [
      inGateway("token", requests.token, "Requests with one project token: half of the project's", inWindow),
      inGateway("project", requests.project, "Requests with all tokens of the project", {
        ...inWindow,
        used: used.requests,
      }),
      inGateway("device", requests.device, "Requests with the credential of one device: a hundredth", inWindow),
      inGateway("sends", config.HERALD_GATEWAY_QUOTA_SENDS, "Notifications; dry runs do not count", {
        variable: "HERALD_GATEWAY_QUOTA_SENDS",
        seconds: quotaSeconds,
        used: used.sends,
      }),
      inGateway("dry-runs", fixed.dryRuns, "Dry runs; each reads the whole audience", {
        seconds: dryRunSeconds,
        used: used.dryRuns,
      }),
      inGateway("queued", config.HERALD_GATEWAY_QUOTA_QUEUED, "Notifications that are accepted and not started", {
        variable: "HERALD_GATEWAY_QUOTA_QUEUED",
        ...forAll,
        ...(queued !== undefined && { used: queued }),
      }),
      inGateway("queued-bytes", fixed.queuedBytes, "Bytes of the same notifications", forAll),
      inGateway("event-streams", fixed.projectStreams, "Open event streams", {
        used: eventStreams.openOf(projectId),
      }),
      inGateway("exports", fixed.projectExports, "Exports that run", {
        used: exportStreams.openOf(projectId),
      }),
      {
        name: "devices",
        description: "Devices, inactive ones included",
        limit: quota.limit,
        used: quota.devices,
        counted_by: "installation",
        variable: "HERALD_REGISTRY_QUOTA_DEVICES",
      },
    ];
  };

/** Long enough for the gateway to detect a broken connection. */
const retryAfterSeconds = 5;

/**
 * Shares the places for streams, imports or exports between projects, so that a new project finds one; see `createShares`. `acquire` throws
 * rate-limited, or returns a function that frees the slot once.
 */
export const createSlots = (
  { perProject, total }: { readonly perProject: number; readonly total: number },
  what: "streams" | "imports" | "exports",
) => {
  const full = (message: string) => new HeraldError("rate-limited", `${what}: ${message}`, { retryAfterSeconds });
  const shares = createShares(total);
  return {
    openOf: (projectId: ProjectId): number => shares.of(projectId),
    acquire: (owner: ShareOwner): (() => void) => {
      const who = owner.startsWith("prj_") ? "a project" : "an operator";
      if (shares.of(owner) >= perProject) throw full(`${who} may have at most ${perProject} open here`);
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
