import { chmod, mkdir, readFile, rename, writeFile } from "node:fs/promises";
import { homedir } from "node:os";
import { dirname, join } from "node:path";
import { UsageError } from "./failures.ts";

/** An address with its credentials. */
export type Profile = {
  readonly url?: string | undefined;
  readonly token?: string | undefined;
  readonly admin_token?: string | undefined;
  readonly project?: string | undefined;
};

export type Environment = Readonly<Record<string, string | undefined>>;

export const defaultProfile = "default";

/** `$XDG_CONFIG_HOME/herald/profiles.json`. Without the variable: in `~/.config`. */
export const profilesFile = ({ XDG_CONFIG_HOME, HOME }: Environment): string =>
  join(XDG_CONFIG_HOME || join(HOME || homedir(), ".config"), "herald", "profiles.json");

export const readProfiles = async (env: Environment): Promise<Record<string, Profile>> => {
  const file = profilesFile(env);
  const text = await readFile(file, "utf8").catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return "{}";
    throw error;
  });
  try {
    return JSON.parse(text);
  } catch {
    throw new UsageError(`${file} is not JSON.`, "Fix or delete it; `herald login` creates it again.");
  }
};

/** Only the owner can read the file. It is replaced atomically. */
export const saveProfile = async (env: Environment, name: string, profile: Profile): Promise<string> => {
  const file = profilesFile(env);
  const profiles = { ...(await readProfiles(env)), [name]: profile };
  await mkdir(dirname(file), { recursive: true, mode: 0o700 });
  const temporary = `${file}.${process.pid}`;
  await writeFile(temporary, `${JSON.stringify(profiles, null, 2)}\n`, { mode: 0o600 });
  await chmod(temporary, 0o600);
  await rename(temporary, file);
  return file;
};
