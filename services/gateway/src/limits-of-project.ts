import type { LimitName, OwnLimits, ProjectId } from "@herald/contracts";
import type { GatewayConfig } from "./config.ts";
import { type FixedLimits, requestLimits } from "./fixed-limits.ts";

type Deps = {
  readonly config: GatewayConfig;
  readonly fixed: FixedLimits;
  /** What an operator has set for the project. */
  readonly own: (projectId: ProjectId) => OwnLimits | undefined;
  /** The number of live gateways when it was last known; undefined before. */
  readonly gateways: () => number | undefined;
};

/** The limits of projects that a gateway applies. Registry applies `devices`. */
type Applied = Exclude<LimitName, "devices">;

export type LimitsOfProject = ReturnType<typeof createLimitsOfProject>;

/** The limits of each project: its own, or the defaults of variables and constants. */
export const createLimitsOfProject = ({ config, fixed, own, gateways }: Deps) => {
  const defaults = (requests = config.HERALD_GATEWAY_LIMIT_PROJECT): Readonly<Record<Applied, number>> => ({
    ...requestLimits(requests),
    project: config.HERALD_GATEWAY_LIMIT_PROJECT,
    sends: config.HERALD_GATEWAY_QUOTA_SENDS,
    "dry-runs": fixed.dryRuns,
    queued: config.HERALD_GATEWAY_QUOTA_QUEUED,
    "queued-bytes": fixed.queuedBytes,
    "event-streams": fixed.projectStreams,
    exports: fixed.projectExports,
  });
  const forAll = defaults();
  /** The limits of tokens and devices follow the project's own limit of requests. */
  const defaultsOf = (set: OwnLimits | undefined) => (set?.project === undefined ? forAll : defaults(set.project));
  const whole = (projectId: ProjectId, name: Applied): number => {
    const set = own(projectId);
    return set?.[name] ?? defaultsOf(set)[name];
  };
  return {
    /** Those of no project. */
    forAll,
    own,
    /** The default of a project. */
    defaultOf: (projectId: ProjectId, name: Applied): number => defaultsOf(own(projectId))[name],
    /** For all gateways together. */
    whole,
    /** This gateway's part, so that more gateways do not multiply what a project may do. */
    part: (projectId: ProjectId, name: Applied): number => Math.ceil(whole(projectId, name) / (gateways() ?? 1)),
  };
};
