import type { ErrorCode } from "@herald/contracts";
import { HeraldError } from "@herald/kit";
import { JetStreamApiError } from "@nats-io/jetstream";
import {
  ClosedConnectionError,
  DrainingConnectionError,
  NoRespondersError,
  PermissionViolationError,
  RequestError,
  TimeoutError,
} from "@nats-io/transport-node";

/** JetStream error codes that the bus handles differently. */
export const apiCodes = {
  insufficientResources: 10023,
  storageExceeded: 10047,
  wrongLastSequence: 10071,
  storeFailed: 10077,
  consumerNotFound: 10014,
  streamNotFound: 10059,
  duplicateInBatch: 10201,
  tooManyBatches: 10211,
} as const;

/** The text of `storeFailed` when a stream, or one of its subjects, is full. */
const full = /^maximum (bytes|messages|messages per subject) exceeded/;

const isFull = (error: JetStreamApiError): boolean =>
  error.code === apiCodes.storageExceeded ||
  error.code === apiCodes.insufficientResources ||
  (error.code === apiCodes.storeFailed && full.test(error.message));

/** No stream stored the message: none covers its subject, or the stream is electing a leader. */
export const isNoResponders = (error: unknown): boolean =>
  error instanceof NoRespondersError || (error instanceof RequestError && error.isNoResponders());

/** The user may not publish there: a configuration error that no retry fixes. */
export const isForbidden = (error: unknown): boolean =>
  (error instanceof RequestError ? error.cause : error) instanceof PermissionViolationError;

/** The broker answers, and its JetStream does not run: yet, after a start, or at all. */
export const isNotEnabled = (error: unknown): boolean => error instanceof Error && error.name === "JetStreamNotEnabled"; // a class that the library does not export

/** Whether the broker caused the error, and not the request. */
const isUnavailable = (error: unknown): boolean =>
  !isForbidden(error) &&
  (error instanceof TimeoutError ||
    error instanceof RequestError ||
    error instanceof NoRespondersError ||
    error instanceof ClosedConnectionError ||
    error instanceof DrainingConnectionError ||
    isNotEnabled(error) ||
    // The bootstrap step creates missing streams.
    (error instanceof JetStreamApiError &&
      (error.status === 503 || error.code === apiCodes.tooManyBatches || error.code === apiCodes.streamNotFound)));

/** The bootstrap step has not created the stream, bucket or durable yet. */
export const isMissing = (error: unknown): boolean =>
  error instanceof JetStreamApiError &&
  (error.code === apiCodes.consumerNotFound || error.code === apiCodes.streamNotFound);

export const undefinedIfMissing = async <Info>(asked: Promise<Info>): Promise<Info | undefined> => {
  try {
    return await asked;
  } catch (error) {
    if (isMissing(error)) return undefined;
    throw error;
  }
};

export const notConnected = (): HeraldError => new HeraldError("bus-unavailable", "the message bus is not connected");

/**
 * Turns a broker's error into queue-full or bus-unavailable; returns every other error unchanged, as a fault of Herald.
 * Callers may see the text, so subjects stay in the cause.
 */
export const toBusError = (error: unknown): unknown => {
  if (error instanceof HeraldError) return error;
  if (error instanceof JetStreamApiError && isFull(error)) {
    return new HeraldError("queue-full", "the queue is full", { cause: error });
  }
  if (isNoResponders(error)) {
    return new HeraldError("bus-unavailable", "the message bus takes no messages at the moment", { cause: error });
  }
  if (isUnavailable(error))
    return new HeraldError("bus-unavailable", "the message bus does not answer", { cause: error });
  return error;
};

/** The code of a HeraldError, or `internal`. */
export const codeOf = (error: unknown): ErrorCode => (error instanceof HeraldError ? error.code : "internal");
