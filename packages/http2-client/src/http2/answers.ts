import type { TransportAnswer } from "../transport.ts";
import type { FieldList } from "./field-decoder.ts";
import type { Output } from "./outbound.ts";
import type { FloodGuard } from "./peer-limits.ts";
import { type AnswerHeaders, Code, ConnectionError, FrameType, Headers, noHeaders, type Stream } from "./wire.ts";

export type AnswerFields =
  | { readonly kind: "final"; readonly status: number; readonly headers: AnswerHeaders; readonly contentLength: number }
  | { readonly kind: "informational" }
  | { readonly kind: "malformed"; readonly problem: string };

const informational: AnswerFields = { kind: "informational" };
const malformed = (problem: string): AnswerFields => ({ kind: "malformed", problem });

const statusPattern = /^[1-9][0-9][0-9]$/;
const namePattern = /^[a-z0-9!#$%&'*+.^_`|~-]+$/;
// biome-ignore lint/suspicious/noControlCharactersInRegex: a header value must not contain these
const forbiddenInValue = /[\0-\x08\x0a-\x1f\x7f]/;
const connectionFields = new Set(["connection", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade"]);
const lengthPattern = /^[0-9]{1,15}$/;

/** Reads an answer's headers and checks them against RFC 9113, 8.1 and 8.3. */
export function readAnswerFields({ names, values, count, tooLarge }: FieldList): AnswerFields {
  if (tooLarge) return malformed("its headers are too large");
  // The only pseudo header of an answer comes first.
  const status = values[0];
  if (count === 0 || names[0] !== ":status" || status === undefined || !statusPattern.test(status))
    return malformed("it has no status");
  if (status.startsWith("1")) return status === "101" ? malformed("it switches protocols") : informational;
  if (count === 1) return { kind: "final", status: Number(status), headers: noHeaders, contentLength: -1 };
  const headers = new Headers();
  for (let at = 1; at < count; at++) {
    const name = names[at] as string;
    const value = values[at] as string;
    if (!namePattern.test(name)) return malformed("one of its headers has no proper name");
    if (connectionFields.has(name)) return malformed(`the header ${name} has no place in HTTP/2`);
    if (forbiddenInValue.test(value)) return malformed("one of its headers has no proper value");
    const before = headers[name];
    headers[name] = before === undefined ? value : `${before}, ${value}`;
  }
  const length = headers["content-length"];
  if (length !== undefined && !lengthPattern.test(length)) return malformed("its content-length is none");
  const contentLength = length === undefined || status === "304" ? -1 : Number(length);
  return { kind: "final", status: Number(status), headers, contentLength };
}

/** Trailers are ignored, but a pseudo header among them makes the answer malformed. */
export const trailersMalformed = ({ names, count }: FieldList): boolean =>
  names.slice(0, count).some((name) => name.startsWith(":"));

type Deps = {
  readonly output: Output;
  readonly guard: FloodGuard;
  readonly streams: ReadonlyMap<number, Stream>;
  readonly maxBodyBytes: number;
  /** The receive window of the connection, as announced to the peer. */
  readonly window: number;
  /** Ends the stream and gives its request the answer. */
  end(stream: Stream, answer: TransportAnswer): void;
};

/** Bytes of all unfinished bodies together: a peer that starts a thousand answers and ends none is an attacker. */
const maxUnfinished = 16_777_216;

/** Assembles answers from the frames of their streams. */
export function createAnswers({ output, guard, streams, maxBodyBytes, window, end }: Deps) {
  let receivable = window;
  let unfinished = 0;

  function over(stream: Stream, answer: TransportAnswer): void {
    unfinished -= stream.received;
    end(stream, answer);
  }

  /** Completes the answer. Resets the stream if the peer has not ended it, or answered before the whole request was sent. */
  function complete(stream: Stream, body: string, ended: boolean): void {
    if (!ended || stream.unsent !== undefined)
      output.frame(FrameType.rstStream, 0, stream.id, ended ? Code.noError : Code.cancel);
    over(stream, { kind: "answered", status: stream.status, headers: stream.headers, body });
  }

  function broken(stream: Stream, code: number, problem: string): void {
    output.frame(FrameType.rstStream, 0, stream.id, code);
    over(stream, { kind: "unknown", reason: `the answer is malformed: ${problem}` });
  }

  /** END_STREAM has arrived. `last` is the whole body if it came in one frame. */
  function ended(stream: Stream, last: string | undefined): void {
    if (stream.contentLength >= 0 && stream.contentLength !== stream.received)
      broken(stream, Code.protocolError, "its content-length is another");
    else complete(stream, last ?? bodyOf(stream), true);
  }

  function bodyOf({ chunks }: Stream): string {
    return chunks === undefined ? "" : Buffer.concat(chunks).toString("utf8", 0, maxBodyBytes);
  }

  function onHead(stream: Stream, fields: FieldList, ends: boolean): void {
    const head = readAnswerFields(fields);
    if (head.kind === "malformed") {
      broken(stream, Code.protocolError, head.problem);
    } else if (head.kind === "informational") {
      guard.nuisance();
      if (ends) broken(stream, Code.protocolError, "it ends before it began");
    } else {
      stream.status = head.status;
      stream.headers = head.headers;
      stream.contentLength = head.contentLength;
      if (ends) ended(stream, "");
    }
  }

  function onBody(stream: Stream, windowBytes: number, bytes: Buffer, start: number, to: number, ends: boolean): void {
    const size = to - start;
    stream.received += size;
    unfinished += size;
    // Most bodies are one frame, which needs no copy.
    if (ends && stream.chunks === undefined && size <= maxBodyBytes) {
      ended(stream, bytes.toString("utf8", start, to));
      return;
    }
    stream.chunks ??= [];
    if (size > 0) stream.chunks.push(Buffer.from(bytes.subarray(start, to)));
    if (stream.received > maxBodyBytes) complete(stream, bodyOf(stream), ends);
    else if (ends) ended(stream, undefined);
    else if (unfinished > maxUnfinished)
      throw new ConnectionError(Code.enhanceYourCalm, "the peer ends none of its answers");
    // The stream's window counts the body only, so give back what padding used.
    else if (windowBytes > size) output.frame(FrameType.windowUpdate, 0, stream.id, windowBytes - size);
  }

  function use(bytes: number): void {
    receivable -= bytes;
    if (receivable < 0) throw new ConnectionError(Code.flowControlError, "the peer sends more than the window holds");
    if (receivable > window / 2) return;
    output.frame(FrameType.windowUpdate, 0, 0, window - receivable);
    receivable = window;
  }

  return {
    /** Headers, trailers, or late fields of a stream that is closed. */
    fields(streamId: number, fields: FieldList, ends: boolean): void {
      const stream = streams.get(streamId);
      if (stream === undefined) guard.nuisance();
      else if (stream.status === 0) onHead(stream, fields, ends);
      else if (!ends || trailersMalformed(fields)) broken(stream, Code.protocolError, "its trailers are none");
      else ended(stream, undefined);
    },
    data(streamId: number, windowBytes: number, bytes: Buffer, start: number, to: number, ends: boolean): void {
      use(windowBytes);
      const stream = streams.get(streamId);
      if (stream === undefined) guard.nuisance();
      else if (stream.status === 0) broken(stream, Code.protocolError, "it begins with its body");
      else onBody(stream, windowBytes, bytes, start, to, ends);
    },
    broken(streamId: number, code: number, problem: string): void {
      const stream = streams.get(streamId);
      if (stream === undefined) guard.nuisance();
      else broken(stream, code, problem);
    },
    /** The stream ended without an answer. */
    forget(stream: Stream): void {
      unfinished -= stream.received;
    },
  };
}
