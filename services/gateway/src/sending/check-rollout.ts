import {
  audienceOfContent,
  audienceRequests,
  bucketCount,
  canaryBuckets,
  canaryWaitMs,
  type DryRun,
  minPerMinute,
  type Rollout,
  type SendV1,
} from "@herald/contracts";
import { HeraldError } from "@herald/kit";
import type { RequestDeps } from "../deps.ts";

type Speed = Pick<Rollout, "per_minute">;

/** Throws validation-failed for a speed at which the audience is not reached in time. */
const requireInTime = ({ per_minute: perMinute }: Speed, devices: number): void => {
  const min = minPerMinute(devices);
  if (perMinute === undefined || perMinute >= min) return;
  throw new HeraldError(
    "validation-failed",
    `notification.rollout.per_minute: must be at least ${min} for an audience of about ${devices} devices`,
  );
};

/** {@link requireInTime}, by the audience that registry estimates. */
export const checkRollout = async ({ sendRequest }: RequestDeps, { projectId, content }: SendV1): Promise<void> => {
  if (content.rollout?.per_minute === undefined) return;
  const { devices } = await sendRequest(audienceRequests.size, { projectId, ...audienceOfContent(content) });
  requireInTime(content.rollout, devices);
};

/** @throws HeraldError `validation-failed`, as the send would */
export const plannedRollout = (rollout: Rollout, devices: number): DryRun["rollout"] => {
  requireInTime(rollout, devices);
  const { canary, per_minute: perMinute } = rollout;
  const first = canary && canaryBuckets(canary) / bucketCount;
  const rest = (devices * (1 - (first ?? 0))) / (perMinute ?? Number.POSITIVE_INFINITY);
  return {
    ...(first !== undefined && { canary_devices: Math.round(devices * first) }),
    minutes: Math.ceil((canary ? canaryWaitMs(canary) / 60_000 : 0) + rest),
  };
};
