import type { IncomingMessage } from "node:http";
import { errors } from "@herald/contracts";
import { allowLongUpload, HeraldError } from "@herald/kit";

/** An upload takes minutes or hours. So often it is checked whether it may still go on. */
const checkMs = 5_000;

export type UploadWatch = {
  /** Resolves as `waiting` does, one at a time, or rejects with the error of the check that ended the upload. */
  readonly orEnded: <Result>(waiting: Promise<Result>) => Promise<Result>;
  /** Whether the sender has disconnected, or the upload was ended. */
  readonly isGone: () => boolean;
  /** Memory that the upload holds and others need. */
  readonly heldBytes: () => number;
  /** Stops the watch: the rest of the connection's requests have the usual time. */
  readonly stop: () => void;
};

/**
 * Lets an upload take any time, as long as it is of use: `check` throws when its caller may no longer send it, or when no one waits for its
 * lines. A failure on Herald's side ends nothing.
 */
export const watchUpload = (
  message: IncomingMessage,
  check: () => Promise<unknown>,
  heldBytes: () => number = () => 0,
): UploadWatch => {
  const endLongUpload = allowLongUpload(message);
  let refusal: HeraldError | undefined;
  let end = (_: HeraldError) => {};
  let isChecking = false;
  const timer = setInterval(async () => {
    if (isChecking) return;
    isChecking = true;
    try {
      await check();
    } catch (error) {
      if (!(error instanceof HeraldError) || errors[error.code].status >= 500 || error.code === "rate-limited") return;
      refusal = error;
      end(error);
    } finally {
      isChecking = false;
    }
  }, checkMs);
  return {
    // A race with one promise for all would keep every chunk's reactions.
    orEnded: (waiting) =>
      new Promise((resolve, reject) => {
        end = reject;
        waiting.then(resolve, reject);
        if (refusal) reject(refusal);
      }),
    isGone: () => refusal !== undefined || message.socket.destroyed,
    heldBytes,
    stop: () => {
      clearInterval(timer);
      endLongUpload();
    },
  };
};
