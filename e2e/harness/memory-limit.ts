/**
 * The program and arguments that run a command so that no process of it takes more memory than this: a test that never ends would else take
 * all of the machine's. Where the system has no such limit, as macOS, it runs without.
 */
export const withMemoryLimit = (
  gigabytes: number,
  command: string,
  args: readonly string[],
): readonly [program: string, args: readonly string[]] => [
  "sh",
  ["-c", 'ulimit -v "$0" 2>/dev/null; exec "$@"', String(gigabytes * 1024 ** 2), command, ...args],
];
