import { createHmac, hkdfSync } from "node:crypto";
import type { AuditedReference, OperatorRole, ProjectId } from "@herald/contracts";

type Key = { readonly id: string; readonly secret: Buffer };
/** The first key makes hashes; every key can verify them. */
type Keys = readonly [Key, ...Key[]];

/** The content of an audit row. `before` and `after` are JSON text, so that the database cannot reorder their fields. */
export type AuditFacts = {
  readonly eventId: string;
  readonly operator: { readonly id: AuditedReference; readonly name: string; readonly role: OperatorRole };
  readonly action: string;
  readonly targetProjectId?: ProjectId;
  readonly target: string;
  readonly address: string;
  readonly requestId?: string;
  readonly before?: string;
  readonly after?: string;
  readonly at: Date;
};

export type AuditDocument = AuditFacts & {
  /** The sequence number of the row: 1 for the first, without gaps. */
  readonly _id: number;
  /** The master key that `hash` was made with. */
  readonly keyId: string;
  readonly previousHash: string;
  readonly hash: string;
};

/** The hash before the first row. */
export const firstHash = "0".repeat(64);

const derivedKeys = new WeakMap<Buffer, Buffer>();

/** Derived once for each master key: for every row it would take most of the time of a check. */
const keyOf = (secret: Buffer): Buffer => {
  const known = derivedKeys.get(secret);
  if (known !== undefined) return known;
  const key = Buffer.from(hkdfSync("sha256", secret, "", "herald audit chain", 32));
  derivedKeys.set(secret, key);
  return key;
};

const sealWith = (secret: Buffer, row: Omit<AuditDocument, "hash">): string => {
  const { operator, at } = row;
  const fields = [
    row._id,
    row.previousHash,
    row.keyId,
    row.eventId,
    [operator.id, operator.name, operator.role],
    row.action,
    row.targetProjectId ?? null,
    row.target,
    row.address,
    row.requestId ?? null,
    row.before ?? null,
    row.after ?? null,
    at.toISOString(),
  ];
  return createHmac("sha256", keyOf(secret)).update(JSON.stringify(fields)).digest("hex");
};

/** The last row that retention removed. The stored chain begins after it. */
export type Checkpoint = Pick<AuditDocument, "hash" | "at" | "keyId"> & {
  readonly sequence: number;
  /** Made with a key that the database does not have: a removal of the oldest rows without this key is detected. */
  readonly seal: string;
};

const sealOf = (secret: Buffer, { sequence, hash, at, keyId }: Omit<Checkpoint, "seal">): string =>
  createHmac("sha256", keyOf(secret))
    .update(JSON.stringify(["checkpoint", sequence, hash, at.toISOString(), keyId]))
    .digest("hex");

/** The checkpoint that replaces this row and all rows before it. The first key makes it, so that older keys can be removed. */
export const checkpointAt = ([key]: Keys, { _id: sequence, hash, at }: AuditDocument): Checkpoint => {
  const facts = { sequence, hash, at, keyId: key.id };
  return { ...facts, seal: sealOf(key.secret, facts) };
};

const unknownKey = (id: string) => `it cannot be checked: the master key ${id} is not configured any more`;

/** Why a checkpoint is invalid; undefined when it is valid. */
export const checkpointFault = (keys: Keys, { seal, ...facts }: Checkpoint): string | undefined => {
  const key = keys.find(({ id }) => id === facts.keyId);
  if (key === undefined) return unknownKey(facts.keyId);
  return sealOf(key.secret, facts) === seal ? undefined : "the checkpoint of the removed rows was changed or forged";
};

/** What a row contains of the row before it. */
export type Predecessor = Pick<AuditDocument, "_id" | "hash">;

/** The row after `last`. */
export const nextRow = ([key]: Keys, last: Predecessor, facts: AuditFacts): AuditDocument => {
  const row = { ...facts, _id: last._id + 1, keyId: key.id, previousHash: last.hash };
  return { ...row, hash: sealWith(key.secret, row) };
};

/** Why a row does not follow `last`; undefined when it does. */
export const chainFault = (keys: Keys, last: Predecessor | undefined, row: AuditDocument): string | undefined => {
  const expected = (last?._id ?? 0) + 1;
  if (row._id !== expected)
    return row._id === expected + 1 ? "the row before it is missing" : "rows before it are missing";
  if (row.previousHash !== (last?.hash ?? firstHash)) return "it does not follow the row before it";
  const key = keys.find(({ id }) => id === row.keyId);
  if (key === undefined) return unknownKey(row.keyId);
  const { hash, ...fields } = row;
  return sealWith(key.secret, fields) === hash ? undefined : "the row was changed or forged: its hash differs";
};
