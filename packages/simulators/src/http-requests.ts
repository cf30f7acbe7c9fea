import type { EventEmitter } from "node:events";
import type { IncomingHttpHeaders } from "node:http";
import type { Http2ServerRequest, Http2ServerResponse } from "node:http2";
import { type Exchange, overResponse, overStream } from "./exchange.ts";
import type { H2Server } from "./h2-server.ts";
import type { Http1Server } from "./http1-server.ts";

/** A request over HTTP/2 or HTTP/1.1 that was read to its end. */
export interface HttpRequest {
  readonly method: string;
  /** With the query, if there is one. */
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  /** Empty when `size` is more than was wanted. */
  readonly body: Buffer;
  /** Bytes. */
  readonly size: number;
  readonly exchange: Exchange;
  /** The connection has shown who it is. */
  proven(): void;
}

const ignore = () => {};

/** Calls `handle` for every complete request; those that came after a GOAWAY are left alone. */
export function onRequests(
  listener: H2Server | Http1Server,
  maxBody: number,
  handle: (request: HttpRequest) => void,
): void {
  const server: EventEmitter = listener.server;
  server.on("request", (request: Http2ServerRequest, response: Http2ServerResponse) => {
    // On HTTP/1.1 node hands over the plain classes, which know no stream.
    const stream = request.httpVersionMajor === 2 ? request.stream : undefined;
    const connection = stream && listener.begin(stream);
    if (stream !== undefined && connection === undefined) return;
    request.on("error", ignore);
    const chunks: Buffer[] = [];
    let size = 0;
    request.on("data", (chunk: Buffer) => {
      size += chunk.length;
      if (size <= maxBody) chunks.push(chunk);
    });
    request.on("end", () => {
      // Node ends what was cut off in the middle, too.
      if (stream?.aborted) return;
      const drop = () => (connection?.socket ?? request.socket).destroy();
      handle({
        method: request.method,
        path: request.url,
        headers: request.headers,
        body: size <= maxBody ? Buffer.concat(chunks) : Buffer.alloc(0),
        size,
        exchange: stream === undefined ? overResponse(response, drop) : overStream(stream, drop),
        proven() {
          if (stream !== undefined && connection !== undefined) listener.proven(stream, connection);
        },
      });
    });
  });
}
