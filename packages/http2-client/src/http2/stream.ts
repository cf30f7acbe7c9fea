import type { TransportAnswer, TransportRequest } from "../transport.ts";
import type { AnswerHeaders } from "./answer-fields.ts";

/** One `send` on its way; it may travel on several connections, one after the other. */
export type PendingRequest = {
  readonly request: TransportRequest;
  /** Order of arrival: what is sent again goes before what came later. */
  readonly order: number;
  readonly resolve: (answer: TransportAnswer) => void;
  done: boolean;
  resends: number;
  connection: { abandon(pending: PendingRequest): void } | undefined;
  /** Its stream on that connection. */
  streamId: number;
  group: Set<PendingRequest> | undefined;
};

/** One request and its answer. */
export type Stream = {
  readonly id: number;
  readonly pending: PendingRequest;
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
