import type { TransportAnswer, TransportRequest } from "../transport.ts";

/** The constants of HTTP/2 (RFC 9113). */

export const FrameType = {
  data: 0,
  headers: 1,
  priority: 2,
  rstStream: 3,
  settings: 4,
  pushPromise: 5,
  ping: 6,
  goaway: 7,
  windowUpdate: 8,
  continuation: 9,
} as const;

export const Flag = { endStream: 1, ack: 1, endHeaders: 4, padded: 8, priority: 32 } as const;

/** The error codes that this side sends or distinguishes. */
export const Code = {
  noError: 0,
  protocolError: 1,
  internalError: 2,
  flowControlError: 3,
  frameSizeError: 6,
  refusedStream: 7,
  cancel: 8,
  compressionError: 9,
  enhanceYourCalm: 11,
} as const;

export const Setting = {
  headerTableSize: 1,
  enablePush: 2,
  maxStreams: 3,
  initialWindow: 4,
  maxFrameSize: 5,
  maxHeaderListSize: 6,
} as const;

export const connectionPreface = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");

export const frameHead = 9;
/** Every peer must accept frames of this size. This side announces no larger size either. */
export const maxFrame = 16_384;
export const maxFrameAllowed = 0xffffff;
export const defaultWindow = 65_535;
export const maxWindow = 0x7fffffff;

/** A protocol error that ends the connection. */
export class ConnectionError extends Error {
  readonly code: number;

  constructor(code: number, message: string) {
    super(message);
    this.name = "ConnectionError";
    this.code = code;
  }
}

export type AnswerHeaders = Readonly<Record<string, string | undefined>>;

/** Inherits no properties, so no header name has a special meaning. Faster to create than `Object.create(null)`. */
export class Headers {
  [name: string]: string | undefined;
}
Object.setPrototypeOf(Headers.prototype, null);
Reflect.deleteProperty(Headers.prototype, "constructor");

export const noHeaders: AnswerHeaders = Object.freeze(new Headers());

/** One pending `send`. Resends may move it to another connection. */
export type PendingRequest = {
  readonly request: TransportRequest;
  /** Order of arrival: a resend goes before requests that came later. */
  readonly order: number;
  readonly resolve: (answer: TransportAnswer) => void;
  done: boolean;
  resends: number;
  connection: { abandon(pending: PendingRequest): void } | undefined;
  /** The request's stream on `connection`. */
  streamId: number;
  group: Set<PendingRequest> | undefined;
};

/** One request and its answer. */
export type Stream = {
  readonly id: number;
  readonly pending: PendingRequest;
  /** Bytes of DATA that the peer accepts; negative after the peer has shrunk its window. */
  window: number;
  /** The unsent rest of the request's body. */
  unsent: Buffer | undefined;
  /** The answer's status; 0 until its headers arrive. */
  status: number;
  headers: AnswerHeaders;
  /** The answer's content-length; -1 when it has none. */
  contentLength: number;
  received: number;
  chunks: Buffer[] | undefined;
};
