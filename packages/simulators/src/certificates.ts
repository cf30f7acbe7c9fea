import { X509Certificate } from "node:crypto";
import { readFile, writeFile } from "node:fs/promises";
import { generate } from "selfsigned";
import { z } from "zod";

/** What the simulators show in TLS: a leaf and the authority that a client must trust, all PEM. */
export const Identity = z.strictObject({ ca: z.string(), certificate: z.string(), key: z.string() });
export type Identity = z.infer<typeof Identity>;

/** Apple's limit for a server certificate that its devices still trust. */
const validDays = 825;
const dayMs = 86_400_000;

const isAddress = (host: string) => /^[\d.]+$/.test(host) || host.includes(":");

/** A fresh authority and a leaf for this machine and `host`; the authority's key is thrown away. */
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
 * The identity kept in `file`, so that a restart does not invalidate the authority that projects were given.
 * A missing or unreadable file, another host or less than 30 days left: a new one, written with mode 0600.
 */
export async function keepIdentity(file: string, host: string): Promise<Identity> {
  try {
    const kept = Identity.parse(JSON.parse(await readFile(file, "utf8")));
    if (serves(kept, host)) return kept;
  } catch {
    // Nothing there that could be used: made again below.
  }
  const identity = await createIdentity(host);
  await writeFile(file, JSON.stringify(identity), { mode: 0o600 });
  return identity;
}
