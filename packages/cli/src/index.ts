export { run } from "./run.ts";
export type { Surroundings } from "./terminal/terminal.ts";
