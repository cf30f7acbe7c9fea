export type { CallProblem } from "./call.ts";
export { createHerald, type Herald, type HeraldOptions, type PushStatus } from "./herald.ts";
export type { KindChoice, KindChoices } from "./preferences.ts";
export type { PushPayload } from "./wire.ts";
