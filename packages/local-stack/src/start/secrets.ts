import { generateKeyPairSync, type KeyPairKeyObjectResult, randomBytes } from "node:crypto";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type NatsPasswords, newPasswords } from "./nats-users.ts";

/** Made once and kept with the data, because the next start must read data that was encrypted or signed with them. */
export type Secrets = ProviderKeys & {
  adminToken: string;
  /** Passwords by user of the broker. */
  nats: NatsPasswords;
  /** `<id>:<base64>`: signs open tokens. */
  openKeys: string;
  /** `<id>:<base64>`: wraps the providers' credentials. */
  masterKeys: string;
};

/** A project's keys from Apple and Google. */
export type ProviderKeys = {
  /** A .p8 key as Apple issues it, in PEM. */
  apnsKey: string;
  /** A service account's key as Firebase issues it, in PEM. */
  fcmKey: string;
};

export const makeProviderKeys = (): ProviderKeys => ({
  apnsKey: pemOf(generateKeyPairSync("ec", { namedCurve: "P-256" })),
  fcmKey: pemOf(generateKeyPairSync("rsa", { modulusLength: 2048 })),
});

export async function keepSecrets(dataDir: string): Promise<Secrets> {
  const file = join(dataDir, "secrets.json");
  const kept = await readFile(file, "utf8").catch(() => "{}");
  const made = makeSecrets();
  const known = JSON.parse(kept) as Partial<Secrets>;
  const secrets = { ...made, ...known, nats: { ...made.nats, ...known.nats } };
  await writeFile(file, `${JSON.stringify(secrets, null, 2)}\n`, { mode: 0o600 });
  return secrets;
}

function makeSecrets(): Secrets {
  const password = () => randomBytes(24).toString("base64url");
  const keyRing = () => `local:${randomBytes(32).toString("base64")}`;
  return {
    adminToken: password(),
    nats: newPasswords(password),
    openKeys: keyRing(),
    masterKeys: keyRing(),
    ...makeProviderKeys(),
  };
}

const pemOf = ({ privateKey }: KeyPairKeyObjectResult): string =>
  privateKey.export({ type: "pkcs8", format: "pem" }).toString();
