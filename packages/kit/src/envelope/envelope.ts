import { createCipheriv, createDecipheriv, randomBytes } from "node:crypto";
import type { MasterKeys } from "./master-keys.ts";

/** Whose secret it is, such as project and provider: an envelope moved to another owner or field does not open. */
export type Owner = readonly [projectId: string, what: string];

/** Secrets under a data key of their own, which is wrapped by a master key. Base64 of nonce, text and tag. */
export type Envelope = {
  /** Id of the master key that wraps the data key. */
  readonly keyId: string;
  readonly dataKey: string;
  readonly fields: Readonly<Record<string, string>>;
};

const algorithm = "aes-256-gcm";
const keyBytes = 32;
const nonceBytes = 12;
const tagBytes = 16;

const bound = (owner: Owner, field: string): Buffer => Buffer.from(JSON.stringify([...owner, field]));

const encrypt = (key: Buffer, bytes: Buffer, binding: Buffer): string => {
  const nonce = randomBytes(nonceBytes);
  const cipher = createCipheriv(algorithm, key, nonce, { authTagLength: tagBytes }).setAAD(binding);
  return Buffer.concat([nonce, cipher.update(bytes), cipher.final(), cipher.getAuthTag()]).toString("base64");
};

const decrypt = (key: Buffer, sealed: string, binding: Buffer): Buffer => {
  const bytes = Buffer.from(sealed, "base64");
  const nonce = bytes.subarray(0, nonceBytes);
  const decipher = createDecipheriv(algorithm, key, nonce, { authTagLength: tagBytes })
    .setAAD(binding)
    .setAuthTag(bytes.subarray(bytes.length - tagBytes));
  return Buffer.concat([decipher.update(bytes.subarray(nonceBytes, bytes.length - tagBytes)), decipher.final()]);
};

/** No field of a record can have this name: it is not one of an object's keys that came from JSON settings. */
const dataKeyField = "\0data-key";

/** The record is under a master key that this process was not given: another process, or the next start, may have it. */
export class UnknownMasterKey extends Error {
  constructor(keyId: string) {
    super(`the master key ${keyId} is not configured`);
    this.name = "UnknownMasterKey";
  }
}

const wrap = ([{ id, secret }]: MasterKeys, owner: Owner, dataKey: Buffer) => ({
  keyId: id,
  dataKey: encrypt(secret, dataKey, bound(owner, dataKeyField)),
});

const unwrap = (keys: MasterKeys, owner: Owner, { keyId, dataKey }: Envelope): Buffer => {
  const key = keys.find(({ id }) => id === keyId);
  if (!key) throw new UnknownMasterKey(keyId);
  return decrypt(key.secret, dataKey, bound(owner, dataKeyField));
};

/** Encrypts named secrets of one record. */
export const seal = (keys: MasterKeys, owner: Owner, secrets: Readonly<Record<string, string>>): Envelope => {
  const dataKey = randomBytes(keyBytes);
  const fields = Object.entries(secrets).map(([field, text]) => [
    field,
    encrypt(dataKey, Buffer.from(text), bound(owner, field)),
  ]);
  return { ...wrap(keys, owner, dataKey), fields: Object.fromEntries(fields) };
};

/** The inverse. Throws for an unknown master key, and for whatever was changed or moved. */
export const unseal = (keys: MasterKeys, owner: Owner, envelope: Envelope): Record<string, string> => {
  const dataKey = unwrap(keys, owner, envelope);
  return Object.fromEntries(
    Object.entries(envelope.fields).map(([field, sealed]) => [
      field,
      decrypt(dataKey, sealed, bound(owner, field)).toString(),
    ]),
  );
};

/** The same secrets with their data key under the first master key; undefined when it is there already. */
export const rewrap = (keys: MasterKeys, owner: Owner, envelope: Envelope): Envelope | undefined => {
  if (envelope.keyId === keys[0].id) return undefined;
  return { ...envelope, ...wrap(keys, owner, unwrap(keys, owner, envelope)) };
};
