import { runCommand } from "../processes/run-command.ts";

const AS_ANOTHER_USER = ["unshare", "--user", "--map-user=1000", "--map-group=1000", "--"] as const;

/**
 * The words to put before a PostgreSQL command. PostgreSQL refuses to run as root; in a user namespace root is seen as
 * user 1000, and root's own 0700 folders stay reachable, which they are not for another user.
 */
export async function postgresUser(env: NodeJS.ProcessEnv): Promise<readonly string[]> {
  if (process.getuid?.() !== 0) return [];
  const { ok, why } = await runCommand(AS_ANOTHER_USER[0], [...AS_ANOTHER_USER.slice(1), "true"], {
    env,
    timeoutMs: 5_000,
  });
  if (!ok)
    throw new Error(`PostgreSQL does not run as root, and there are no user namespaces (${why}): use another user`);
  return AS_ANOTHER_USER;
}
