import type { Http2ServerResponse, OutgoingHttpHeaders, ServerHttp2Stream } from "node:http2";

/** The answer to a client. */
export interface ProviderReply {
  readonly status: number;
  readonly headers: OutgoingHttpHeaders;
  readonly body?: string | undefined;
  /** The provider's short name of an error; undefined for success. */
  readonly reason?: string | undefined;
  /** The error in words, for the log only. */
  readonly problem?: string | undefined;
}

/** One completely read request, and the ways to end it. */
export interface Exchange {
  answer(reply: ProviderReply): void;
  /** Sends the headers and half of the body, then calls `broken`. Never sends the rest. */
  begin(reply: ProviderReply, broken: () => void): void;
  /** Sends RST_STREAM with an RFC 9113 code. On HTTP/1.1 drops the connection. */
  reset(code: number): void;
  /** Destroys the socket without GOAWAY or close_notify. */
  dropConnection(): void;
}

export const overStream = (stream: ServerHttp2Stream, dropConnection: () => void): Exchange => ({
  answer({ status, headers, body }) {
    // The client may have closed the stream.
    if (stream.destroyed || stream.closed) return;
    stream.respond({ ":status": status, ...headers }, { endStream: body === undefined });
    if (body !== undefined) stream.end(body);
  },
  begin({ status, headers, body = "" }, broken) {
    if (stream.destroyed) return;
    // With announced trailers, node does not mark the answer as complete (END_STREAM) when it resets the stream.
    stream.respond({ ":status": status, ...headers }, { waitForTrailers: true });
    // Write the frames before the break, or node discards them.
    if (body === "") setImmediate(broken);
    else stream.write(body.slice(0, Math.ceil(body.length / 2)), () => setImmediate(broken));
  },
  reset: (code) => stream.close(code),
  dropConnection,
});

/** For HTTP/1.1, where node passes its plain response object instead. */
export const overResponse = (response: Http2ServerResponse, dropConnection: () => void): Exchange => ({
  answer({ status, headers, body }) {
    response.writeHead(status, headers).end(body ?? "");
  },
  begin({ status, headers, body = "" }, broken) {
    // Announce a longer body, so that the client does not take the break for the end.
    response.writeHead(status, { ...headers, "content-length": Buffer.byteLength(body) + 1 });
    response.write(body.slice(0, Math.ceil(body.length / 2)) || " ", "utf8", () => setImmediate(broken));
  },
  reset: dropConnection,
  dropConnection,
});
