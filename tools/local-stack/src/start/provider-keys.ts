import { generateKeyPairSync, type KeyPairKeyObjectResult } from "node:crypto";

/** A project's keys from Apple and Google. */
export type ProviderKeys = ReturnType<typeof makeProviderKeys>;

export const makeProviderKeys = () => ({
  /** A .p8 key as Apple issues it, in PEM. */
  apnsKey: pemOf(generateKeyPairSync("ec", { namedCurve: "P-256" })),
  /** A service account's key as Firebase issues it, in PEM. */
  fcmKey: pemOf(generateKeyPairSync("rsa", { modulusLength: 2048 })),
});

const pemOf = ({ privateKey }: KeyPairKeyObjectResult): string =>
  privateKey.export({ type: "pkcs8", format: "pem" }).toString();
