import type { Identity } from "./certificates.ts";
import type { PushLog } from "./push-log.ts";
import type { Script } from "./script/script.ts";

/** What each simulator is made of. */
export interface Parts<Options> {
  readonly identity: Identity;
  readonly script: Script;
  readonly log: PushLog;
  readonly host: string;
  readonly publicHost: string;
  readonly port: number;
  readonly options: Options;
}
