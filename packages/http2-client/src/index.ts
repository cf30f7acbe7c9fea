export { createHttp1Transport } from "./http1-transport.ts";
export { createAgreedTransport } from "./negotiated-transport.ts";
export type { Transport, TransportAnswer, TransportOptions, TransportRequest } from "./transport.ts";
export { createHttp2Pool, transports } from "./transports.ts";
