import type { Notification } from "@herald/client";

type Rollout = NonNullable<Notification["rollout"]>;

const phases: Readonly<Record<string, string>> = {
  waiting: "Waiting until the next part begins",
  canary: "Sending to the canary",
  rolling: "Sending part by part",
  held: "On hold",
  done: "No further parts",
};

const reasons: Readonly<Record<string, string>> = {
  "provider-paused": "devices wait for their provider, which is paused",
  throttled: "Herald sends more slowly than devices are released",
  "few-outcomes": "fewer than 50 devices have an outcome to judge by",
};

/** Where a rollout stands, in words. */
export const phaseOf = ({ phase, held }: Pick<Rollout, "phase" | "held">): string => {
  const words = phases[phase] ?? phase;
  return phase !== "held" || held === undefined ? words : `${words}: ${reasons[held] ?? held}`;
};
