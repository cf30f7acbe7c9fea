import type { DryRun } from "@herald/client";
import { count } from "../../parts/format.tsx";

/** A planned rollout in words; undefined: the notification has none. */
export const rolloutWords = ({ rollout: planned }: DryRun): string | undefined => {
  if (planned === undefined) return undefined;
  const { canary_devices: canary, minutes } = planned;
  const words = [
    ...(canary === undefined ? [] : [`about ${count(canary)} ${canary === 1 ? "device" : "devices"} first`]),
    ...(minutes > 0 ? [`at least ${count(minutes)} min in all`] : []),
  ];
  return words.length > 0 ? words.join(", ") : "part after part";
};
