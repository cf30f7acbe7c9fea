export { createHttp1Transport } from "./http1-transport.ts";
export { createHttp2Transport } from "./http2-transport.ts";
export { createNegotiatedTransport } from "./negotiated-transport.ts";
export type { Transport, TransportAnswer, TransportOptions, TransportRequest } from "./transport.ts";
