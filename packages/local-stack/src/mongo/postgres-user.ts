import { chown, lstat, readdir, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import { runCommand } from "../processes/run-command.ts";

/** `nobody`: initdb wants a user that the system has a name for, and this one every system has. */
const nobodyId = 65_534;

/** The words to put before a PostgreSQL command, and who must own its data folder when that is not this user. */
export type PostgresUser = { before: readonly string[]; owner?: number };

const systemCache = "/var/cache/herald";

const inUserNamespace = ["unshare", "--user", `--map-user=${nobodyId}`, `--map-group=${nobodyId}`, "--"];
const withRootsReach = [
  ...["setpriv", `--reuid=${nobodyId}`, `--regid=${nobodyId}`, "--clear-groups"],
  ...["--inh-caps=+dac_override", "--ambient-caps=+dac_override", "--"],
];

/**
 * PostgreSQL refuses to run as root, and another user cannot enter root's 0700 folders. In a user namespace root is seen as
 * somebody else and keeps its reach. Where those are off, as in most containers, it is another user with the one
 * capability that opens folders; that serves for its data, but not for its own program (see `programsFor`).
 */
export async function postgresUser(env: NodeJS.ProcessEnv): Promise<PostgresUser> {
  if (process.getuid?.() !== 0) return { before: [] };
  const works = async ([command = "", ...args]: readonly string[]) =>
    (await runCommand(command, [...args, "true"], { env, timeoutMs: 5_000 })).ok;
  if (await works(inUserNamespace)) return { before: inUserNamespace, owner: 0 };
  if (await works(withRootsReach)) return { before: withRootsReach, owner: nobodyId };
  throw new Error("PostgreSQL does not run as root, and neither unshare nor setpriv works here: use another user");
}

/**
 * Where PostgreSQL's programs go: into the cache folder, or elsewhere when its user cannot reach that. PostgreSQL looks for
 * its own executable with `access`, which disregards capabilities.
 */
export async function programsFor({ owner }: PostgresUser, cache: string): Promise<string> {
  return owner !== nobodyId || (await everyoneMayEnter(cache)) ? cache : systemCache;
}

async function everyoneMayEnter(folder: string): Promise<boolean> {
  const mode = await stat(folder).then(
    (stats) => stats.mode,
    () => 0o001, // not there yet: it is made so
  );
  if ((mode & 0o001) === 0) return false;
  return dirname(folder) === folder || everyoneMayEnter(dirname(folder));
}

/** Gives the folder to whom PostgreSQL will run as. */
export async function giveTo({ owner }: PostgresUser, folder: string): Promise<void> {
  if (owner === undefined || (await lstat(folder)).uid === owner) return;
  for (const name of await readdir(folder, { recursive: true })) await chown(join(folder, name), owner, owner);
  await chown(folder, owner, owner); // last: it is what tells a whole change from one that was cut short
}
