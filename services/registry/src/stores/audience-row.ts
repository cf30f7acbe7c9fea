import type {
  ApnsEnvironment,
  DeviceId,
  FcmTokenKind,
  Platform,
  Provider,
  Recipient,
  WebPushKeys,
} from "@herald/contracts";
import { BSON } from "mongodb";
import type { DeviceDocument } from "./device-document.ts";

/** The fields of a device that a page reads; `facets` and data only if the targets need them. */
export type AudienceRow = Pick<
  DeviceDocument,
  | "_id"
  | "platform"
  | "provider"
  | "installationId"
  | "token"
  | "tokenUpdatedAt"
  | "updatedAt"
  | "environment"
  | "tokenKind"
  | "keys"
  | "vapidKeyId"
  | "locale"
  | "userId"
> &
  Partial<Pick<DeviceDocument, "facets" | "metadata" | "identifiers" | "lastSeenAt">>;

export const audienceFields = {
  platform: 1,
  provider: 1,
  installationId: 1,
  token: 1,
  tokenUpdatedAt: 1,
  updatedAt: 1,
  environment: 1,
  tokenKind: 1,
  keys: 1,
  vapidKeyId: 1,
  locale: 1,
  userId: 1,
} as const;

export const recipientOf = (row: AudienceRow): Recipient => {
  const recipient: Recipient = { id: row._id, token: row.token, tokenAt: row.tokenUpdatedAt.getTime() };
  if (row.environment) recipient.environment = row.environment;
  if (row.tokenKind) recipient.tokenKind = row.tokenKind;
  if (row.keys) recipient.keys = row.keys;
  if (row.vapidKeyId) recipient.vapidKeyId = row.vapidKeyId;
  if (row.locale) recipient.locale = row.locale;
  if (row.userId !== undefined) recipient.userId = row.userId;
  return recipient;
};

/** Type bytes of https://bsonspec.org/spec.html. */
const type = { string: 0x02, document: 0x03, date: 0x09 } as const;

const two32 = 2 ** 32;

/** Reads a row from BSON at a fifth of the driver's cost: a broadcast reads every device of its audience. Rows of any other form are left to the driver. */
export const readAudienceRow = (document: Uint8Array): AudienceRow => {
  const bytes = Buffer.isBuffer(document)
    ? document
    : Buffer.from(document.buffer, document.byteOffset, document.length);
  return readFields(bytes) ?? (BSON.deserialize(bytes) as AudienceRow);
};

const readFields = (bytes: Buffer): AudienceRow | undefined => {
  let id = "";
  let platform = "";
  let token: string | undefined;
  let tokenUpdatedAt: Date | undefined;
  let updatedAt: Date | undefined;
  let environment: string | undefined;
  let tokenKind: string | undefined;
  let keys: WebPushKeys | undefined;
  let vapidKeyId: string | undefined;
  let locale: string | undefined;
  let userId: string | undefined;
  let provider: string | undefined;
  let installationId: string | undefined;
  const end = bytes.length - 1;
  for (let at = 4; at < end; ) {
    const kind = bytes[at];
    const nameAt = at + 1;
    let nameEnd = nameAt;
    while (nameEnd < end && bytes[nameEnd] !== 0) nameEnd++;
    const valueAt = nameEnd + 1;
    // A length that points outside the document: the driver reports the error.
    if (valueAt + 8 > bytes.length) return undefined;
    if (kind === type.date) {
      const date = new Date(bytes.readInt32LE(valueAt + 4) * two32 + bytes.readUInt32LE(valueAt));
      at = valueAt + 8;
      if (isName(bytes, nameAt, nameEnd, "tokenUpdatedAt")) tokenUpdatedAt = date;
      else if (isName(bytes, nameAt, nameEnd, "updatedAt")) updatedAt = date;
      else return undefined;
      continue;
    }
    if (kind === type.document) {
      if (!isName(bytes, nameAt, nameEnd, "keys")) return undefined;
      const next = valueAt + bytes.readInt32LE(valueAt);
      if (next <= valueAt || next > end) return undefined;
      keys = BSON.deserialize(bytes.subarray(valueAt, next)) as WebPushKeys;
      at = next;
      continue;
    }
    if (kind !== type.string) return undefined;
    const textAt = valueAt + 4;
    at = textAt + bytes.readInt32LE(valueAt);
    if (at <= textAt || at > end) return undefined;
    const text = bytes.toString("utf8", textAt, at - 1);
    // Fields of every device first.
    if (isName(bytes, nameAt, nameEnd, "_id")) id = text;
    else if (isName(bytes, nameAt, nameEnd, "platform")) platform = text;
    else if (isName(bytes, nameAt, nameEnd, "token")) token = text;
    else if (isName(bytes, nameAt, nameEnd, "locale")) locale = text;
    else if (isName(bytes, nameAt, nameEnd, "userId")) userId = text;
    else if (isName(bytes, nameAt, nameEnd, "environment")) environment = text;
    else if (isName(bytes, nameAt, nameEnd, "tokenKind")) tokenKind = text;
    else if (isName(bytes, nameAt, nameEnd, "vapidKeyId")) vapidKeyId = text;
    else if (isName(bytes, nameAt, nameEnd, "provider")) provider = text;
    else if (isName(bytes, nameAt, nameEnd, "installationId")) installationId = text;
    else return undefined;
  }
  if (token === undefined || tokenUpdatedAt === undefined || updatedAt === undefined) return undefined;
  const row: Mutable<AudienceRow> = {
    _id: id as DeviceId,
    platform: platform as Platform,
    token,
    tokenUpdatedAt,
    updatedAt,
  };
  if (environment !== undefined) row.environment = environment as ApnsEnvironment;
  if (tokenKind !== undefined) row.tokenKind = tokenKind as FcmTokenKind;
  if (keys !== undefined) row.keys = keys;
  if (vapidKeyId !== undefined) row.vapidKeyId = vapidKeyId;
  if (locale !== undefined) row.locale = locale;
  if (userId !== undefined) row.userId = userId;
  if (provider !== undefined) row.provider = provider as Provider;
  if (installationId !== undefined) row.installationId = installationId;
  return row;
};

type Mutable<Type> = { -readonly [Name in keyof Type]: Type[Name] };

const isName = (bytes: Buffer, from: number, to: number, name: string): boolean => {
  if (to - from !== name.length) return false;
  for (let index = 0; index < name.length; index++) if (bytes[from + index] !== name.charCodeAt(index)) return false;
  return true;
};
