import type { TransportAnswer } from "../transport.ts";
import { readAnswerFields, trailersMalformed } from "./answer-fields.ts";
import type { FieldList } from "./field-decoder.ts";
import type { FloodGuard } from "./flood-guard.ts";
import type { Output } from "./output.ts";
import type { Stream } from "./stream.ts";
import { Code, ConnectionError, FrameType } from "./wire.ts";

type Deps = {
  readonly output: Output;
  readonly guard: FloodGuard;
  readonly streams: ReadonlyMap<number, Stream>;
  readonly maxBodyBytes: number;
  /** What the peer was told that the connection takes. */
  readonly window: number;
  /** The stream is over, for its request too. */
  end(stream: Stream, answer: TransportAnswer): void;
};

/** Bodies of answers that are not whole yet, all together: a peer that begins a thousand and ends none means harm. */
const maxUnfinished = 16_777_216;

/** Puts answers together from what comes for their streams. */
export function createAnswers({ output, guard, streams, maxBodyBytes, window, end }: Deps) {
  let receivable = window;
  let unfinished = 0;

  function over(stream: Stream, answer: TransportAnswer): void {
    unfinished -= stream.received;
    end(stream, answer);
  }

  /** The answer stands. If the peer has not ended it, or wants no more of the request, the stream is cut. */
  function complete(stream: Stream, body: string, ended: boolean): void {
    if (!ended || stream.unsent !== undefined)
      output.frame(FrameType.rstStream, 0, stream.id, ended ? Code.noError : Code.cancel);
    over(stream, { kind: "answered", status: stream.status, headers: stream.headers, body });
  }

  function broken(stream: Stream, code: number, problem: string): void {
    output.frame(FrameType.rstStream, 0, stream.id, code);
    over(stream, { kind: "unknown", reason: `the answer is malformed: ${problem}` });
  }

  /** The stream's END_STREAM is here, and with it `last`, the end of its body. */
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
    // Most bodies are one frame, and need no copy.
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
    // The stream's window is for its body: what padding took of it is given back.
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
    /** Headers, trailers, or what comes after the stream is over. */
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
