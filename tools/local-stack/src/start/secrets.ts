import { randomBytes } from "node:crypto";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { newPasswords } from "@herald/provision";
import { makeProviderKeys } from "./provider-keys.ts";

/** Made once and kept with the data, because the next start must read data that was encrypted or signed with them. */
export type Secrets = ReturnType<typeof makeSecrets>;

export async function keepSecrets(dataDir: string): Promise<Secrets> {
  const file = join(dataDir, "secrets.json");
  const kept = await readFile(file, "utf8").catch(() => "{}");
  const made = makeSecrets();
  const known = JSON.parse(kept) as Partial<Secrets>;
  const secrets = { ...made, ...known, nats: { ...made.nats, ...known.nats } };
  await writeFile(file, `${JSON.stringify(secrets, null, 2)}\n`, { mode: 0o600 });
  return secrets;
}

function makeSecrets() {
  // People paste them behind a flag, where a dash at the beginning would be another flag.
  const password = () => randomBytes(24).toString("hex");
  const keyRing = () => `local:${randomBytes(32).toString("base64")}`;
  return {
    adminToken: password(),
    /** Passwords by user of the broker. */
    nats: newPasswords(password),
    /** `<id>:<base64>`: signs open tokens. */
    openKeys: keyRing(),
    /** `<id>:<base64>`: wraps the providers' credentials. */
    masterKeys: keyRing(),
    ...makeProviderKeys(),
  };
}
