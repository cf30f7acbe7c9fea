import { X509Certificate } from "node:crypto";
import { readFile, writeFile } from "node:fs/promises";
import { generate } from "selfsigned";
import { z } from "zod";

/** The simulators' TLS identity, all PEM: a leaf certificate with its key, and the authority that a client must trust. */
export const Identity = z.strictObject({ ca: z.string(), certificate: z.string(), key: z.string() });
export type Identity = z.infer<typeof Identity>;

/** The longest validity of a server certificate that Apple's devices trust. */
const validDays = 825;
const dayMs = 86_400_000;

const isAddress = (host: string) => /^[\d.]+$/.test(host) || host.includes(":");

/** Creates an authority and a leaf for this machine and `host`. Discards the authority's key. */
export async function createIdentity(host: string): Promise<Identity> {
  const notAfterDate = new Date(Date.now() + validDays * dayMs);
  const common = { keyType: "ec", algorithm: "sha256", notAfterDate } as const;
  const authority = await generate([{ name: "commonName", value: "Herald simulators" }], {
    ...common,
    extensions: [
      { name: "basicConstraints", cA: true, critical: true },
      { name: "keyUsage", keyCertSign: true, cRLSign: true, critical: true },
    ],
  });
  const local = ["localhost", "127.0.0.1", "::1"];
  const names = local.includes(host) ? local : [...local, host];
  const leaf = await generate([{ name: "commonName", value: "localhost" }], {
    ...common,
    ca: { key: authority.private, cert: authority.cert },
    extensions: [
      { name: "basicConstraints", cA: false, critical: true },
      { name: "keyUsage", digitalSignature: true, critical: true },
      { name: "extKeyUsage", serverAuth: true },
      {
        name: "subjectAltName",
        altNames: names.map((name) =>
          isAddress(name) ? { type: 7 as const, ip: name } : { type: 2 as const, value: name },
        ),
      },
    ],
  });
  return { ca: authority.cert, certificate: leaf.cert, key: leaf.private };
}

const serves = (identity: Identity, host: string) => {
  const leaf = new X509Certificate(identity.certificate);
  const named = isAddress(host) ? leaf.checkIP(host) : leaf.checkHost(host);
  return named !== undefined && new Date(leaf.validTo).getTime() > Date.now() + 30 * dayMs;
};

/**
 * Returns the identity in `file`, so that projects can still trust the same authority after a restart. Creates a new identity, and
 * writes it with mode 0600, if the file is missing or unreadable, is for another host, or expires within 30 days.
 */
export async function keepIdentity(file: string, host: string): Promise<Identity> {
  try {
    const kept = Identity.parse(JSON.parse(await readFile(file, "utf8")));
    if (serves(kept, host)) return kept;
  } catch {
    // No usable file: create a new identity below.
  }
  const identity = await createIdentity(host);
  await writeFile(file, JSON.stringify(identity), { mode: 0o600 });
  return identity;
}
