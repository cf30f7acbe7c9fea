import { runCommand } from "../processes/run-command.ts";

/** Files that are not needed: documentation, translations, and the bitcode that only a JIT would read. */
const leftOut = ["./usr/share/doc", "./usr/share/locale", "./usr/share/man", "*/bitcode/*"];

/** A shell's pipe, because tar closes the socket that Node would put between the two before its writer is done. */
const unpackScript = 'archive=$1; shift; dpkg-deb --fsys-tarfile "$archive" | tar -x "$@"';

/** Unpacks one package's files over the root. Its scripts are not run. */
export async function unpackDeb(archive: string, root: string, env: NodeJS.ProcessEnv): Promise<void> {
  const flags = [
    "-C",
    root,
    "--no-same-owner",
    "--keep-directory-symlink",
    ...leftOut.map((path) => `--exclude=${path}`),
  ];
  const result = await runCommand("sh", ["-c", unpackScript, "unpack", archive, ...flags], { env, timeoutMs: 120_000 });
  if (!result.ok) throw new Error(`unpacking ${archive}: ${result.why}`);
}
