export { eventually } from "./eventually.ts";
export { type FaultyProxy, faultyProxy } from "./faulty-proxy.ts";
export { type FreshDatabase, freshDatabase } from "./fresh-database.ts";
export { leakCheck } from "./leak-check.ts";
export { readStream, type StreamMessage } from "./read-stream.ts";
export { type Broker, type BrokerOptions, startBroker } from "./start-broker.ts";
