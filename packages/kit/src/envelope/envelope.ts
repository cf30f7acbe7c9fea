import { createCipheriv, createDecipheriv, randomBytes } from "node:crypto";
import type { Logger } from "../logger.ts";

/** The owner of a secret, such as project and provider. An envelope moved to another owner or field does not open. */
export type Owner = readonly [projectId: string, what: string];

/** Secrets encrypted with their own data key, which a master key wraps. Base64 of nonce, text and tag. */
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

/** Encrypts with AES-256-GCM and a random nonce: equal bytes look different each time. Only the same `binding` decrypts. */
export const encrypt = (key: Uint8Array, bytes: Uint8Array, binding: Uint8Array): Buffer => {
  const nonce = randomBytes(nonceBytes);
  const cipher = createCipheriv(algorithm, key, nonce, { authTagLength: tagBytes }).setAAD(binding);
  return Buffer.concat([nonce, cipher.update(bytes), cipher.final(), cipher.getAuthTag()]);
};

/** The inverse of {@link encrypt}. Throws for another key or binding, and for changed bytes. */
export const decrypt = (key: Uint8Array, bytes: Uint8Array, binding: Uint8Array): Buffer => {
  const nonce = bytes.subarray(0, nonceBytes);
  const decipher = createDecipheriv(algorithm, key, nonce, { authTagLength: tagBytes })
    .setAAD(binding)
    .setAuthTag(bytes.subarray(bytes.length - tagBytes));
  return Buffer.concat([decipher.update(bytes.subarray(nonceBytes, bytes.length - tagBytes)), decipher.final()]);
};

/** No field of a record can have this name: JSON settings contain no such key. */
const dataKeyField = "\0data-key";

/** The record's master key is not configured in this process. Another process, or this one after a restart, may have it. */
export class UnknownMasterKey extends Error {
  constructor(keyId: string) {
    super(`the master key ${keyId} is not configured`);
    this.name = "UnknownMasterKey";
  }
}

const wrap = ([{ id, secret }]: MasterKeys, owner: Owner, dataKey: Buffer) => ({
  keyId: id,
  dataKey: encrypt(secret, dataKey, bound(owner, dataKeyField)).toString("base64"),
});

const unwrap = (keys: MasterKeys, owner: Owner, { keyId, dataKey }: Envelope): Buffer => {
  const key = keys.find(({ id }) => id === keyId);
  if (!key) throw new UnknownMasterKey(keyId);
  return decrypt(key.secret, Buffer.from(dataKey, "base64"), bound(owner, dataKeyField));
};

/** Encrypts named secrets of one record. */
export const seal = (keys: MasterKeys, owner: Owner, secrets: Readonly<Record<string, string>>): Envelope => {
  const dataKey = randomBytes(keyBytes);
  const fields = Object.entries(secrets).map(([field, text]) => [
    field,
    encrypt(dataKey, Buffer.from(text), bound(owner, field)).toString("base64"),
  ]);
  return { ...wrap(keys, owner, dataKey), fields: Object.fromEntries(fields) };
};

/** The inverse of {@link seal}. Throws for an unknown master key, and for changed or moved data. */
export const unseal = (keys: MasterKeys, owner: Owner, envelope: Envelope): Record<string, string> => {
  const dataKey = unwrap(keys, owner, envelope);
  return Object.fromEntries(
    Object.entries(envelope.fields).map(([field, sealed]) => [
      field,
      decrypt(dataKey, Buffer.from(sealed, "base64"), bound(owner, field)).toString(),
    ]),
  );
};

/** Wraps the same data key with the first master key; undefined if it already is. */
export const rewrap = (keys: MasterKeys, owner: Owner, envelope: Envelope): Envelope | undefined => {
  if (envelope.keyId === keys[0].id) return undefined;
  return { ...envelope, ...wrap(keys, owner, unwrap(keys, owner, envelope)) };
};

/** A key from the environment that wraps the data keys of records. */
export type MasterKey = { readonly id: string; readonly secret: Buffer };
/** The first key wraps, all keys unwrap, so keys can be rotated. */
export type MasterKeys = readonly [MasterKey, ...MasterKey[]];

/**
 * Parses `<id>:<base64 of 32 bytes>`, several separated by commas, the first one first. `isSize`: whether a key may have so many bytes.
 * Returns a problem in words, never with a key in it.
 */
const keyRingOf =
  (size: string, isSize: (bytes: number) => boolean) =>
  (text: string): { keys: MasterKeys } | { problem: string } => {
    const keys: MasterKey[] = [];
    for (const entry of text.split(",")) {
      const [, id = "", secret = ""] = /^([A-Za-z0-9_-]{1,16}):([A-Za-z0-9+/_-]+={0,2})$/.exec(entry.trim()) ?? [];
      if (id === "") return { problem: "each key must be <id>:<base64>, the id of 1 to 16 letters and digits" };
      const bytes = Buffer.from(secret, "base64");
      if (!isSize(bytes.length)) return { problem: `the key ${id} must be ${size} of base64` };
      if (keys.some((key) => key.id === id)) return { problem: `the key id ${id} is used twice` };
      keys.push({ id, secret: bytes });
    }
    const [first, ...rest] = keys;
    return first === undefined ? { problem: "at least one key is required" } : { keys: [first, ...rest] };
  };

/** The ids of the keys in a configuration, by variable: the first one of each is in use, the others only read. */
export const keyIdsOf = (config: object): Record<string, string[]> =>
  Object.fromEntries(
    Object.entries(config)
      .filter(([name]) => name.endsWith("_KEYS"))
      .map(([name, ring]: [string, MasterKeys]) => [name, ring.map(({ id }) => id)]),
  );

/** Parses the keys that wrap data keys. */
export const parseMasterKeys = keyRingOf("32 bytes", (bytes) => bytes === keyBytes);

/** Parses the keys that sign open tokens. HKDF adds no entropy: a short key would stay a weak key. */
export const parseOpenKeys = keyRingOf("at least 32 bytes", (bytes) => bytes >= keyBytes);

/** A stored envelope; `store` replaces it. */
type StoredSecret = {
  readonly owner: Owner;
  readonly envelope: Envelope;
  readonly store: (rewrapped: Envelope) => Promise<unknown>;
};

/** Encrypts the data keys of all stored secrets of a kind with the first master key, so that older master keys can be removed. */
export const rewrapAll = async (
  keys: MasterKeys,
  secrets: AsyncIterable<StoredSecret>,
  { kind, log }: { readonly kind: string; readonly log: Logger },
): Promise<void> => {
  const configured = new Set(keys.map(({ id }) => id));
  const missing = new Set<string>();
  let moved = 0;
  for await (const { owner, envelope, store } of secrets) {
    if (!configured.has(envelope.keyId)) {
      missing.add(envelope.keyId);
      continue;
    }
    const rewrapped = rewrap(keys, owner, envelope);
    if (rewrapped === undefined) continue;
    await store(rewrapped);
    moved++;
  }
  if (moved > 0) log.info({ kind, moved }, "secrets are now encrypted with the first master key");
  if (missing.size > 0)
    log.error({ kind, missing: [...missing].sort() }, "secrets need master keys that are not configured");
};
