export { freePortsEnvironment } from "./start/ports.ts";
export { type RunningHerald, type ServiceStart, startHerald } from "./start/start-herald.ts";
