export { createHerald, type Herald, type HeraldOptions, type PushStatus } from "./herald.ts";
export type { KindChoice, KindChoices } from "./preferences.ts";
export type { CallProblem } from "./problem.ts";
export type { PushPayload } from "./wire.ts";
