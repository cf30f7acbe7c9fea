import { homedir } from "node:os";
import { join } from "node:path";

/** Where fetched programs live, for all checkouts of this user: `HERALD_CACHE_DIR`, else the user's cache folder. */
export function cacheFolder(env: NodeJS.ProcessEnv): string {
  if (env.HERALD_CACHE_DIR) return env.HERALD_CACHE_DIR;
  return join(env.XDG_CACHE_HOME || join(homedir(), ".cache"), "herald");
}
