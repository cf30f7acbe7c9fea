import type { Identity } from "./certificates.ts";
import type { PushLog } from "./push-log.ts";
import type { Script } from "./script/script.ts";

/** What all simulators share. */
export interface Deps {
  readonly identity: Identity;
  readonly script: Script;
  readonly log: PushLog;
  readonly host: string;
  readonly publicHost: string;
}
