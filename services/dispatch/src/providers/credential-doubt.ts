import type { DeviceId } from "@herald/contracts";
import type { Outcome } from "../domain/outcome.ts";
import type { createProviderRoutes, RoutePermit } from "./provider-routes.ts";

/** Apple and Google refuse a valid credential for a moment now and then, so a second push must say the same this much later. */
const secondAfterMs = 5_000;
/** While the second push has no answer, the others are checked again after this time: most answers take less, a timeout more. */
const answerCheckMs = 1_000;
/** A doubt that no answer decides ends after this time, because meanwhile pushes go one at a time. */
const maxDoubtMs = 60_000;

/** Whether the provider has looked at the device or the message, and so accepts the credential. */
export const acceptsCredential = (outcome: Outcome): boolean =>
  outcome.kind === "accepted" ||
  outcome.kind === "unregistered" ||
  (outcome.kind === "rejected" && !outcome.notSent && !outcome.tokenMismatch);

export type CredentialDoubt = ReturnType<typeof createCredentialDoubt>;

/**
 * Begins when the provider refuses the credential of a push: the other pushes wait, until one of them, with a new token, gets the same
 * answer or another. Times are milliseconds since 1970.
 */
export const createCredentialDoubt = (deps: {
  /** What the provider said. */
  readonly reason: string;
  readonly now: () => number;
  readonly acquire: ReturnType<typeof createProviderRoutes>["acquire"];
  /** Makes the next push use a new token. */
  readonly renewToken: () => void;
}) => {
  const { reason, now } = deps;
  const since = now();
  let second: RoutePermit | undefined;

  const blockedUntil = (): number | undefined => {
    const passed = now() - since;
    // Less than 0 after the clock was set back.
    if (passed >= 0 && passed < secondAfterMs) return since + secondAfterMs;
    return second ? now() + answerCheckMs : undefined;
  };

  return {
    reason,
    since: new Date(since),
    /** Until when all pushes wait; undefined when the next one may be the second. */
    blockedUntil,
    /** Like the method of routes, for the second push alone. */
    acquire: (name: string, device: DeviceId): RoutePermit | number => {
      const until = blockedUntil();
      if (until !== undefined) return until;
      const permit = deps.acquire(name, device);
      if (typeof permit === "number") return permit;
      deps.renewToken();
      second = { ...permit };
      return second;
    },
    isSecond: (permit: RoutePermit): boolean => permit === second,
    /** The second push got no answer about the credential, so another may be the second. True when the doubt ends. */
    undecided: (): boolean => {
      second = undefined;
      return Math.abs(now() - since) > maxDoubtMs;
    },
  };
};
