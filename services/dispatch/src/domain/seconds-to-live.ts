import { maxTtlSeconds } from "@herald/contracts";

/**
 * For how long a provider may still keep a push, in whole seconds; never more than a sender may ask for. The moment was set
 * by another machine's clock, and one that is ahead of ours would make it longer than FCM takes.
 */
export const secondsToLive = (expiresAt: Date, now: Date): number =>
  Math.min(maxTtlSeconds, Math.max(0, Math.floor((expiresAt.getTime() - now.getTime()) / 1_000)));

/** The same as APNs has it: seconds since 1970, `0` for now or never. */
export const apnsExpiration = (expiresAt: Date, now: Date): string =>
  expiresAt > now ? String(Math.floor(expiresAt.getTime() / 1_000)) : "0";
