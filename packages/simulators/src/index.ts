export type { ApnsKey } from "./apns/provider-token.ts";
export type { ApnsOptions } from "./apns/server.ts";
export type { ProviderStats, Push, PushFilter } from "./push-log.ts";
export { InvalidScript, type Rule } from "./script/rule.ts";
export type { Provider, Simulator } from "./simulator.ts";
export { type Simulators, type SimulatorsOptions, startSimulators } from "./start-simulators.ts";
