import type { IncomingHttpHeaders } from "node:http";
import type { Http2ServerRequest, Http2ServerResponse } from "node:http2";
import type { Readable } from "node:stream";
import { type Exchange, overResponse, overStream } from "./exchange.ts";
import type { H2Server } from "./tls-servers.ts";

/** A completely read request over HTTP/2 or HTTP/1.1. */
export interface HttpRequest {
  readonly method: string;
  /** Path with query. */
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  /** Empty when `size` exceeds `maxBody`. */
  readonly body: Buffer;
  /** Bytes. */
  readonly size: number;
  readonly exchange: Exchange;
  /** Marks the connection as authenticated. */
  proven(): void;
}

/** Calls `done` with a complete body, which is empty when its `size` in bytes exceeds `maxBody`. */
export function readBody(
  request: Readable & { readonly aborted?: boolean },
  maxBody: number,
  done: (body: Buffer, size: number) => void,
): void {
  const chunks: Buffer[] = [];
  let size = 0;
  request.on("data", (chunk: Buffer) => {
    size += chunk.length;
    if (size <= maxBody) chunks.push(chunk);
  });
  request.on("end", () => {
    // Node also emits `end` for an aborted request.
    if (!request.aborted) done(size <= maxBody ? Buffer.concat(chunks) : Buffer.alloc(0), size);
  });
}

/** Calls `handle` for every complete request. Ignores streams after a GOAWAY. */
export function onRequests(listener: H2Server, maxBody: number, handle: (request: HttpRequest) => void): void {
  listener.server.on("request", (request: Http2ServerRequest, response: Http2ServerResponse) => {
    // On HTTP/1.1 node passes its plain classes, which have no stream.
    const stream = request.httpVersionMajor === 2 ? request.stream : undefined;
    const connection = stream && listener.begin(stream);
    if (stream !== undefined && connection === undefined) return;
    request.on("error", () => {});
    readBody(request, maxBody, (body, size) => {
      const drop = () => (connection?.socket ?? request.socket).destroy();
      handle({
        method: request.method,
        path: request.url,
        headers: request.headers,
        body,
        size,
        exchange: stream === undefined ? overResponse(response, drop) : overStream(stream, drop),
        proven() {
          if (stream !== undefined && connection !== undefined) listener.proven(stream, connection);
        },
      });
    });
  });
}
