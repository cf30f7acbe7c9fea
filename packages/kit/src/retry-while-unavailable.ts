import { setTimeout as sleep } from "node:timers/promises";
import { errors } from "@herald/contracts";
import { HeraldError } from "./herald-error.ts";

/** Whether an error means that a dependency is unavailable, so that a retry may succeed. */
export const isUnavailable = (error: unknown): error is HeraldError =>
  error instanceof HeraldError && errors[error.code].retry === "unavailable";

/** Waits after attempt `tries`, counted from 0. Resolves to false when no retry may follow. */
export type RetryPause = (error: unknown, tries: number) => Promise<boolean>;

/**
 * Runs `work`, and repeats it after a pause while a dependency is unavailable. Throws any other error of `work` after `otherAttempts`
 * attempts (absent: at once), and every error when the pause says that no retry may follow.
 */
export const retryWhileUnavailable = async <Result>(
  work: () => Promise<Result>,
  pause: RetryPause,
  { otherAttempts = 1 }: { readonly otherAttempts?: number } = {},
): Promise<Result> => {
  let others = 0;
  for (let tries = 0; ; tries++) {
    try {
      return await work();
    } catch (error) {
      if (!isUnavailable(error) && ++others >= otherAttempts) throw error;
      if (!(await pause(error, tries))) throw error;
    }
  }
};

const firstPauseMs = 50;
const maxPauseMs = 5_000;

/** A pause that doubles from 50 ms to 5 s. No retry follows when `signal` is aborted because the service stops. */
export const growingPause =
  (signal: AbortSignal): RetryPause =>
  (_, tries) =>
    sleep(Math.min(maxPauseMs, firstPauseMs * 2 ** tries), true, { signal }).catch(() => false);
