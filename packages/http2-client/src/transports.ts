import { openFramedConnection } from "./http2/connection.ts";
import { createPool } from "./http2-transport.ts";
import { openHttp2Connection } from "./node-http2/http2-connection.ts";
import type { Transport, TransportOptions } from "./transport.ts";

export type CreateTransport = (options: TransportOptions) => Transport;

/** HTTP/2 framed here, over `node:tls`. */
export const createFramedPool: CreateTransport = (options) => createPool(options, openFramedConnection);

/** HTTP/2 by `node:http2`: several times the cost, and the way back should the other ever be wrong about a peer. */
export const createHttp2Pool: CreateTransport = (options) => createPool(options, openHttp2Connection);

/** By the name that the setting has. */
export const transports = { framed: createFramedPool, "node-http2": createHttp2Pool } as const;
