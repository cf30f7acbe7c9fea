import type { AskedRules, Recipient } from "@herald/contracts";
import { deviceValues } from "@herald/rules";
import { BSON } from "mongodb";
import type { StoredToken } from "../domain/further-tokens.ts";
import type { Partitionable } from "../domain/partition-batches.ts";
import { ruleInputsOf } from "../domain/preferences.ts";
import type { DeviceDocument } from "./device-document.ts";

export const audienceFields = {
  platform: 1,
  provider: 1,
  installationKey: 1,
  token: 1,
  tokenUpdatedAt: 1,
  updatedAt: 1,
  environment: 1,
  app: 1,
  tokenKind: 1,
  keys: 1,
  vapidKeyId: 1,
  locale: 1,
  capabilities: 1,
  userId: 1,
} as const;

/** What the rules of a project ask about a device. */
export const ruleFields = { preferences: 1, userPreferences: 1, timeZone: 1 } as const;

/** The fields of a device that a page reads; those of rules, `facets` and data only if the send needs them. */
export type AudienceRow = Pick<DeviceDocument, "_id" | keyof typeof audienceFields> &
  Partial<Pick<DeviceDocument, "tokens" | "facets" | "metadata" | "identifiers" | "lastSeenAt" | "lastOpenedAt">> &
  Partial<Pick<DeviceDocument, keyof typeof ruleFields>>;

/** The fields that show whether two devices are the same app installation of the same user. */
export type Installed = Pick<AudienceRow, "_id" | "provider" | "installationKey">;

/** Whether the platform's own provider may serve another device of the same app installation. */
export const mayBeReachedTwice = ({ provider, installationKey }: Installed): boolean =>
  provider !== undefined && installationKey !== undefined;

/** What a send asks about its devices. */
export type AskedOfDevices = {
  /** Rows have their devices' values at these paths. */
  readonly devicePaths?: readonly string[] | undefined;
  /** Rows have what these rules of the project ask about. */
  readonly rules?: AskedRules | undefined;
};

/** The device of a row, with what the send asks about it. */
export const partitionableOf = (row: AudienceRow, { devicePaths, rules }: AskedOfDevices = {}): Partitionable => {
  const recipient = recipientOf(row);
  if (rules) Object.assign(recipient, ruleInputsOf(row, rules));
  if (devicePaths) recipient.values = { device: deviceValues(row, devicePaths) };
  const { platform, provider, updatedAt } = row;
  const changedAt = updatedAt.getTime();
  return provider ? { platform, provider, recipient, changedAt } : { platform, recipient, changedAt };
};

const recipientOf = (row: AudienceRow): Recipient => {
  const recipient: Recipient = { id: row._id, token: row.token, tokenAt: row.tokenUpdatedAt.getTime() };
  if (row.environment) recipient.environment = row.environment;
  if (row.app) recipient.app = row.app;
  if (row.tokenKind) recipient.tokenKind = row.tokenKind;
  if (row.keys) recipient.keys = row.keys;
  if (row.vapidKeyId) recipient.vapidKeyId = row.vapidKeyId;
  if (row.locale) recipient.locale = row.locale;
  if (row.capabilities) recipient.capabilities = row.capabilities;
  if (row.userId !== undefined) recipient.userId = row.userId;
  return recipient;
};

/** Fields by their type byte, see https://bsonspec.org/spec.html. Fields of every device first. */
type Fields = Readonly<Record<number, readonly string[]>>;
const type = { string: 0x02, document: 0x03, array: 0x04, date: 0x09 } as const;
const named = (...names: (keyof AudienceRow)[]) => names;
const fieldsOfRow: Fields = {
  [type.date]: named("tokenUpdatedAt", "updatedAt"),
  [type.document]: named("keys", "metadata", "identifiers"),
  [type.array]: named("tokens"),
  [type.string]: named(
    ...(["_id", "platform", "token", "locale", "userId", "environment", "tokenKind"] as const),
    ...(["vapidKeyId", "provider", "installationKey", "app", "capabilities"] as const),
    ...(["preferences", "userPreferences", "timeZone"] as const),
  ),
};
const fieldsOfToken: Fields = {
  [type.date]: ["at"] satisfies (keyof StoredToken)[],
  [type.string]: ["key", "token", "hash", "environment"] satisfies (keyof StoredToken)[],
};

const two32 = 2 ** 32;

/** Reads a row from BSON at a fifth of the driver's cost: a broadcast reads all its devices. The driver reads rows of any other form. */
export const readAudienceRow = (document: Uint8Array): AudienceRow => {
  const bytes = Buffer.isBuffer(document)
    ? document
    : Buffer.from(document.buffer, document.byteOffset, document.length);
  const row: Partial<AudienceRow> | undefined = readFields(bytes, fieldsOfRow);
  const isWhole =
    row !== undefined && row.token !== undefined && row.tokenUpdatedAt !== undefined && row.updatedAt !== undefined;
  return (isWhole ? row : BSON.deserialize(bytes)) as AudienceRow;
};

const readFields = (bytes: Buffer, fields: Fields): Record<string, unknown> | undefined => {
  const row: Record<string, unknown> = {};
  const end = bytes.length - 1;
  for (let at = 4; at < end; ) {
    const kind = bytes[at] ?? 0;
    const nameAt = at + 1;
    let nameEnd = nameAt;
    while (nameEnd < end && bytes[nameEnd] !== 0) nameEnd++;
    const valueAt = nameEnd + 1;
    const name = fields[kind]?.find((each) => isName(bytes, nameAt, nameEnd, each));
    // A length that points outside the document: the driver reports the error.
    if (name === undefined || valueAt + 8 > bytes.length) return undefined;
    if (kind === type.date) {
      row[name] = new Date(bytes.readInt32LE(valueAt + 4) * two32 + bytes.readUInt32LE(valueAt));
      at = valueAt + 8;
      continue;
    }
    const isText = kind === type.string;
    const from = isText ? valueAt + 4 : valueAt;
    at = from + bytes.readInt32LE(valueAt);
    if (at <= from || at > end) return undefined;
    if (isText) row[name] = bytes.toString("utf8", from, at - 1);
    else if (kind === type.document) row[name] = BSON.deserialize(bytes.subarray(from, at));
    else {
      const token = readOnlyToken(bytes.subarray(from, at));
      if (token === undefined) return undefined;
      row[name] = [token];
    }
  }
  return row;
};

/** A page asks for one token of each device: a list of one document, after the list's length, the type and the name `0`. */
const readOnlyToken = (list: Buffer) => {
  const from = 7;
  const isOne =
    list.length > from + 4 &&
    list[4] === type.document &&
    isName(list, 5, 6, "0") &&
    list[6] === 0 &&
    list.readInt32LE(from) === list.length - 1 - from;
  return isOne ? readFields(list.subarray(from, -1), fieldsOfToken) : undefined;
};

const isName = (bytes: Buffer, from: number, to: number, name: string): boolean => {
  if (to - from !== name.length) return false;
  for (let index = 0; index < name.length; index++) if (bytes[from + index] !== name.charCodeAt(index)) return false;
  return true;
};
