import type { AnswerHeaders } from "./answer-fields.ts";
import type { Job } from "./connection-types.ts";

/** One request and its answer. */
export type Stream = {
  readonly id: number;
  readonly job: Job;
  /** How many bytes of DATA the peer takes; below zero after it made its window smaller. */
  window: number;
  /** What of the body was not sent yet. */
  unsent: Buffer | undefined;
  /** Of the answer, 0 until its headers are here. */
  status: number;
  headers: AnswerHeaders;
  /** As the answer's headers say; -1 when they do not. */
  contentLength: number;
  received: number;
  chunks: Buffer[] | undefined;
};
