import { ConfigError } from "../config/read-config.ts";
import type { MasterKeys } from "../envelope/envelope.ts";
import { scrub } from "../redact.ts";
import { version } from "../version.ts";
import { readBackup, writeBackup } from "./backup-file.ts";

export type BackupCommands = {
  /** `registry`, `dispatch`, `analytics` or `broker`. */
  readonly part: string;
  /** The key rings that the part's secrets are encrypted with. */
  readonly keys: readonly MasterKeys[];
  readonly read: () => AsyncIterable<Uint8Array>;
  /** Resolves to what was restored, in words. `replace`: removes what is there, which is refused otherwise. */
  readonly restore: (frames: AsyncGenerator<Uint8Array>, options: { readonly replace: boolean }) => Promise<string>;
};

const usage = `backup            writes a backup to standard output
restore           restores one from standard input, into an empty store
restore --replace restores one, and removes what is there`;

/** sysexits.h */
const [exitUsage, exitConfig] = [64, 78];

const run = async (args: readonly string[], { part, keys, read, restore }: BackupCommands): Promise<string> => {
  const ids = [...new Set(keys.flatMap((ring) => ring.map(({ id }) => id)))];
  const [command, option] = args;
  if (command === "backup") {
    if (process.stdout.isTTY)
      throw new Error("the backup is binary: send it into a file, as in `backup > registry.backup`");
    await writeBackup(process.stdout, { herald: version, part, at: new Date().toISOString(), keys: ids }, read());
    return `backed up ${part}`;
  }
  const { header, frames } = await readBackup(process.stdin, part);
  const missing = header.keys.filter((id) => !ids.includes(id));
  if (missing.length > 0)
    throw new Error(
      `its secrets are encrypted with the keys ${missing.join(", ")}, which the configuration lacks: add them to the key rings, after the first key`,
    );
  const restored = await restore(frames, { replace: option === "--replace" });
  return `restored ${part} as of ${header.at}: ${restored}`;
};

/**
 * Runs `backup` or `restore [--replace]` if the process was called with it, and ends the process: with 0, or with 1 and the reason on
 * standard error. Returns if it was called without arguments.
 */
export const runBackupCommand = async (name: string, prepare: () => BackupCommands): Promise<void> => {
  const args = process.argv.slice(2);
  if (args.length === 0) return;
  const say = (line: string) => process.stderr.write(`${name}: ${line}\n`);
  const known = ["backup", "restore", "restore --replace"].includes(args.join(" "));
  if (!known) {
    say(`there is no command \`${args.join(" ")}\`\n${usage}`);
    process.exit(exitUsage);
  }
  try {
    say(await run(args, prepare()));
    process.exit(0);
  } catch (error) {
    say(scrub(error instanceof Error ? error.message : String(error)));
    process.exit(error instanceof ConfigError ? exitConfig : 1);
  }
};
