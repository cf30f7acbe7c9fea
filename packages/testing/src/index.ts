export { findBrokerSource } from "./broker-source.ts";
export { eventually } from "./eventually.ts";
export { type FaultyProxy, faultyProxy } from "./faulty-proxy.ts";
export { type FreshDatabase, freshDatabase } from "./fresh-database.ts";
export { leakCheck } from "./leak-check.ts";
export { type BrokerHands, operateBroker } from "./operate-broker.ts";
export type { BrokerSource } from "./provided.ts";
export { readStream, type StreamMessage } from "./read-stream.ts";
export { type Broker, type BrokerOptions, startBroker } from "./start-broker.ts";
