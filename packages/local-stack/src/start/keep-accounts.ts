import { appendFile, mkdir, rename } from "node:fs/promises";
import { join } from "node:path";
import { exists } from "../provision/provision.ts";
import { type NatsPasswords, natsAccounts } from "./nats-users.ts";

/** Consumers that were added to the local broker: they outlive a restart, as their durables do. */
export const consumersFile = (dataDir: string): string => join(dataDir, "nats", "consumers.conf");

/**
 * Makes sure that the local broker finds its consumers beside its configuration, and its data where its account is. Returns
 * what its configuration says of accounts.
 */
export async function keepAccounts(dataDir: string, passwords: NatsPasswords): Promise<string> {
  const folder = join(dataDir, "nats");
  await mkdir(folder, { recursive: true, mode: 0o700 });
  await appendFile(consumersFile(dataDir), "", { mode: 0o600 });
  await adoptStore(join(folder, "jetstream"));
  return natsAccounts(passwords, "consumers.conf");
}

/** Before Herald had an account of its own its streams were in the global one, `$G`; they are the same on disk. */
async function adoptStore(store: string): Promise<void> {
  const [before, now] = [join(store, "$G"), join(store, "HERALD")];
  if ((await exists(before)) && !(await exists(now))) await rename(before, now);
}
