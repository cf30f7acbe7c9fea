import type { Http2ServerResponse, OutgoingHttpHeaders, ServerHttp2Stream } from "node:http2";

/** The answer to a client. */
export interface Reply {
  readonly status: number;
  readonly headers: OutgoingHttpHeaders;
  readonly body?: string | undefined;
  /** The provider's short name of an error; undefined for success. */
  readonly reason?: string | undefined;
  /** What was wrong in words, for the log only. */
  readonly problem?: string | undefined;
}

/** One request, read to its end, and the ways to be done with it. */
export interface Exchange {
  answer(reply: Reply): void;
  /** Sends the head and half of the body and then calls `broken`: the rest never follows. */
  begin(reply: Reply, broken: () => void): void;
  /** RST_STREAM with an RFC 9113 code; on HTTP/1.1 the connection is dropped. */
  reset(code: number): void;
  /** The socket is gone, without GOAWAY or close_notify. */
  dropConnection(): void;
}

export const overStream = (stream: ServerHttp2Stream, dropConnection: () => void): Exchange => ({
  answer: (reply) => answerStream(stream, reply),
  begin({ status, headers, body = "" }, broken) {
    if (stream.destroyed) return;
    // Promised trailers keep node from marking the answer as complete (END_STREAM) when it is reset.
    stream.respond({ ":status": status, ...headers }, { waitForTrailers: true });
    // The frames must be on their way before the break, or they are thrown away with it.
    if (body === "") setImmediate(broken);
    else stream.write(body.slice(0, Math.ceil(body.length / 2)), () => setImmediate(broken));
  },
  reset: (code) => stream.close(code),
  dropConnection,
});

/** For HTTP/1.1, where node gives its plain response in the same place. */
export const overResponse = (response: Http2ServerResponse, dropConnection: () => void): Exchange => ({
  answer({ status, headers, body }) {
    response.writeHead(status, headers).end(body ?? "");
  },
  begin({ status, headers, body = "" }, broken) {
    // The whole length is promised, so that the break cannot be taken for the end.
    response.writeHead(status, { ...headers, "content-length": Buffer.byteLength(body) + 1 });
    response.write(body.slice(0, Math.ceil(body.length / 2)) || " ", "utf8", () => setImmediate(broken));
  },
  reset: dropConnection,
  dropConnection,
});

/** The client may be gone by now, which is no concern of a server's. */
export function answerStream(stream: ServerHttp2Stream, { status, headers, body }: Reply): void {
  if (stream.destroyed || stream.closed) return;
  stream.respond({ ":status": status, ...headers }, { endStream: body === undefined });
  if (body !== undefined) stream.end(body);
}
