import { type ClientHttp2Session, type ClientHttp2Stream, constants, type IncomingHttpHeaders } from "node:http2";
import { failureWords } from "@herald/kit";
import type { Job } from "../http2/connection-types.ts";
import type { TransportAnswer } from "../transport.ts";

/** What the streams of one connection share. */
export type ExchangeOwner = {
  readonly maxBodyBytes: number;
  /** Above this stream id the peer acted on nothing, as its GOAWAY says. */
  lastProcessed: number;
  /** The stream is gone and its place is free. */
  finished(job: Job, streamId: number | undefined, answer: TransportAnswer): void;
};

/** One request and its answer on one stream. */
export type Exchange = ClientHttp2Stream & { exchange: ExchangeState };

type ExchangeState = {
  readonly owner: ExchangeOwner;
  readonly job: Job;
  headers: IncomingHttpHeaders | undefined;
  first: Buffer | undefined;
  more: Buffer[] | undefined;
  bytes: number;
  /** The answer is complete, or as much of it as is wanted. */
  whole: boolean;
  error: Error | undefined;
};

const { NGHTTP2_CANCEL, NGHTTP2_FLAG_END_STREAM, NGHTTP2_NO_ERROR, NGHTTP2_REFUSED_STREAM } = constants;

/**
 * Opens a stream and writes the request. The handlers are functions of this file that find their state on the stream,
 * because closures for each request are a measurable part of what a push costs.
 */
export function startExchange(
  session: ClientHttp2Session,
  head: readonly string[],
  owner: ExchangeOwner,
  job: Job,
): Exchange {
  const { request } = job;
  const fields = head.slice();
  fields.push(":path", request.path);
  for (const name in request.headers) fields.push(name, request.headers[name] as string);
  const stream = session.request(fields) as Exchange;
  stream.exchange = {
    owner,
    job,
    headers: undefined,
    first: undefined,
    more: undefined,
    bytes: 0,
    whole: false,
    error: undefined,
  };
  stream.on("response", onResponse);
  stream.on("error", onError);
  stream.on("close", onClose);
  if (request.body.length === 0) stream.end();
  else stream.end(request.body);
  return stream;
}

/** Gives up waiting: the peer is told with RST_STREAM CANCEL. */
export const abandonExchange = (exchange: Exchange): void => exchange.close(NGHTTP2_CANCEL);

function onResponse(this: Exchange, headers: IncomingHttpHeaders, flags: number): void {
  this.exchange.headers = headers;
  if (flags & NGHTTP2_FLAG_END_STREAM) {
    complete(this);
  } else {
    this.on("data", onData);
    this.on("end", onEnd);
  }
}

function onData(this: Exchange, chunk: Buffer): void {
  const { exchange } = this;
  if (exchange.whole) return;
  if (exchange.first === undefined) exchange.first = chunk;
  else if (exchange.more === undefined) exchange.more = [chunk];
  else exchange.more.push(chunk);
  exchange.bytes += chunk.length;
  if (exchange.bytes > exchange.owner.maxBodyBytes) complete(this, NGHTTP2_CANCEL);
}

function onEnd(this: Exchange): void {
  // A reset ends the readable side too. Only NO_ERROR says that the peer had no more to say.
  if (this.rstCode === NGHTTP2_NO_ERROR && this.exchange.error === undefined) complete(this);
}

/** The answer stands, whatever becomes of the stream; a request that the peer did not want to read to its end is cut. */
function complete(stream: Exchange, code: number = NGHTTP2_NO_ERROR): void {
  stream.exchange.whole = true;
  if (code !== NGHTTP2_NO_ERROR || !stream.writableFinished) stream.close(code);
}

function onError(this: Exchange, error: Error): void {
  this.exchange.error = error;
}

function onClose(this: Exchange): void {
  const { owner, job } = this.exchange;
  owner.finished(job, this.id, verdict(this));
}

function verdict(stream: Exchange): TransportAnswer {
  const { exchange, id, rstCode } = stream;
  const { headers, owner } = exchange;
  const status = Number(headers?.[":status"]);
  if (exchange.whole && headers !== undefined && status > 0)
    return { kind: "answered", status, headers: plainHeaders(headers), body: bodyOf(exchange) };
  const reason = exchange.error
    ? failureWords(exchange.error)
    : `the stream ended with code ${rstCode} before a whole answer`;
  // A stream without an id was never written. A peer that began to answer has acted, whatever it says later.
  if (headers === undefined && (id === undefined || id > owner.lastProcessed || rstCode === NGHTTP2_REFUSED_STREAM))
    return { kind: "unprocessed", reason };
  return { kind: "unknown", reason };
}

function bodyOf({ first, more, bytes, owner }: ExchangeState): string {
  if (first === undefined) return "";
  const body = more === undefined ? first : Buffer.concat([first, ...more], bytes);
  return body.toString("utf8", 0, Math.min(bytes, owner.maxBodyBytes));
}

function plainHeaders(headers: IncomingHttpHeaders): Record<string, string | undefined> {
  const plain: Record<string, string | undefined> = Object.create(null);
  for (const name in headers) {
    const value = headers[name];
    if (name !== ":status") plain[name] = Array.isArray(value) ? value.join(", ") : value;
  }
  return plain;
}
