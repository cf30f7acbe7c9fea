export type { Problem } from "./call.ts";
export { createHerald, type Herald, type HeraldOptions, type Status } from "./herald.ts";
export type { PushPayload } from "./wire.ts";
