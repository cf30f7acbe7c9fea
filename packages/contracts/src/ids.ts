import { hash, randomFillSync } from "node:crypto";
import { z } from "zod";

/** Crockford's base32 in lower case: no i, l, o, u. Its characters are in ASCII order, so ids sort by time. */
const alphabet = "0123456789abcdefghjkmnpqrstvwxyz";
const values = new Map([...alphabet].map((character, value) => [character, value]));

const prefixes = {
  project: "prj",
  device: "dev",
  topic: "top",
  import: "imp",
  notification: "ntf",
  token: "tok",
  webhook: "whk",
  message: "msg",
  "identity key": "idk",
  operator: "opr",
} as const;
type Kind = keyof typeof prefixes;

export type ProjectId = `prj_${string}`;
export type DeviceId = `dev_${string}`;
export type ImportId = `imp_${string}`;
export type TopicId = `top_${string}`;
export type NotificationId = `ntf_${string}`;
export type TokenId = `tok_${string}`;
export type WebhookId = `whk_${string}`;
export type IdentityKeyId = `idk_${string}`;
export type OperatorId = `opr_${string}`;
export type WebhookMessageId = `msg_${string}`;

const patternOf = (kind: Kind): string => `^${prefixes[kind]}_[0-7][0-9a-hjkmnp-tv-z]{25}$`;

const idSchema = <Id extends string>(kind: Kind) => {
  const pattern = patternOf(kind);
  const form = new RegExp(pattern);
  return z
    .custom<Id>((value) => typeof value === "string" && form.test(value), {
      error: `must be a ${kind} id: ${prefixes[kind]}_ and 26 characters`,
    })
    .meta({ type: "string", pattern, examples: [`${prefixes[kind]}_06bq4ghm31tz5d2ns8y7k9w0ac`] });
};

const deviceId = new RegExp(patternOf("device"));
/** The check of a device id's schema, for code where the schema would run too often. */
export const isDeviceId = (value: unknown): boolean => typeof value === "string" && deviceId.test(value);

export const ProjectId = idSchema<ProjectId>("project");
export const DeviceId = idSchema<DeviceId>("device");
export const ImportId = idSchema<ImportId>("import");
export const TopicId = idSchema<TopicId>("topic");
export const NotificationId = idSchema<NotificationId>("notification");
export const TokenId = idSchema<TokenId>("token");
export const WebhookId = idSchema<WebhookId>("webhook");
export const WebhookMessageId = idSchema<WebhookMessageId>("message");
export const OperatorId = idSchema<OperatorId>("operator");
export const IdentityKeyId = idSchema<IdentityKeyId>("identity key");

/** 16 bytes as 26 characters: 128 bits after two zero bits, so the first character is 0 to 7. */
export const encodeBase32 = (bytes: Uint8Array): string => {
  let text = "";
  let buffer = 0;
  let bits = 2;
  for (const byte of bytes) {
    buffer = (buffer << 8) | byte;
    bits += 8;
    while (bits >= 5) {
      bits -= 5;
      text += alphabet[(buffer >> bits) & 31];
    }
    buffer &= (1 << bits) - 1;
  }
  return text;
};

/** The inverse of {@link encodeBase32}: 26 characters as 16 bytes. */
export const decodeBase32 = (text: string): Uint8Array => {
  const bytes = new Uint8Array(16);
  let buffer = 0;
  let bits = -2;
  let at = 0;
  for (const character of text) {
    buffer = (buffer << 5) | (values.get(character) ?? 0);
    bits += 5;
    if (bits >= 8) {
      bits -= 8;
      bytes[at++] = (buffer >> bits) & 255;
      buffer &= (1 << bits) - 1;
    }
  }
  return bytes;
};

const pool = new Uint8Array(4_096);
let unused = 0;
/** Random bytes from a pool, each used once: the system call costs as much for sixteen bytes as for four thousand. */
const randomBytes = (count: number): Uint8Array => {
  if (unused < count) {
    randomFillSync(pool);
    unused = pool.length;
  }
  unused -= count;
  return pool.slice(unused, unused + count);
};

/** A UUIDv7 (RFC 9562): 48 bits of milliseconds since 1970, version, variant, and 74 bits that are random unless given. */
const uuidV7 = (now: number, bytes: Uint8Array = randomBytes(16)): Uint8Array => {
  for (let index = 5, rest = now; index >= 0; index--, rest = Math.floor(rest / 256)) bytes[index] = rest % 256;
  bytes[6] = 0x70 | ((bytes[6] ?? 0) & 0x0f);
  bytes[8] = 0x80 | ((bytes[8] ?? 0) & 0x3f);
  return bytes;
};

/** The number of ids that differ only in their last byte. */
export const maxGroupSize = 256;

const newId =
  <Id extends string>(kind: Kind) =>
  (now: Date): Id =>
    `${prefixes[kind]}_${encodeBase32(uuidV7(now.getTime()))}` as Id;

/**
 * The ids of `count` notifications that are accepted as one group, at most 256. They differ only in their last byte, so each id leads to
 * its group ({@link sendGroupOf}). The first id's last byte is random, so that choices by the end of an id are spread evenly.
 */
export const newNotificationIds = (now: Date, count: number): NotificationId[] => idsFrom(uuidV7(now.getTime()), count);

/** `count` ids of a group ({@link newNotificationIds}), in order, starting with `first`. */
export const notificationIdsFrom = (first: NotificationId, count: number): NotificationId[] =>
  idsFrom(idBytes(first), count);

const idsFrom = (bytes: Uint8Array, count: number): NotificationId[] => {
  if (count > maxGroupSize) throw new RangeError(`a group has at most ${maxGroupSize} notifications`);
  const first = bytes[15] ?? 0;
  return Array.from({ length: count }, (_, index) => {
    bytes[15] = (first + index) % maxGroupSize;
    return `${prefixes.notification}_${encodeBase32(bytes)}` as NotificationId;
  });
};

/** The group in which a notification was accepted: the part of its id that all ids of the group share. */
export const sendGroupOf = (id: NotificationId): NotificationId => {
  const bytes = idBytes(id);
  bytes[15] = 0;
  return `${prefixes.notification}_${encodeBase32(bytes)}` as NotificationId;
};

export const newProjectId = newId<ProjectId>("project");
export const newDeviceId = newId<DeviceId>("device");
export const newImportId = newId<ImportId>("import");
export const newTopicId = newId<TopicId>("topic");
export const newNotificationId = newId<NotificationId>("notification");
export const newTokenId = newId<TokenId>("token");
export const newWebhookId = newId<WebhookId>("webhook");
export const newIdentityKeyId = newId<IdentityKeyId>("identity key");
export const newOperatorId = newId<OperatorId>("operator");
export const newWebhookMessageId = newId<WebhookMessageId>("message");

/** The device that a line of an import creates. The id is the same each time the line is applied. */
export const importedDeviceId = (importId: ImportId, line: number, at: Date): DeviceId => {
  const digest = hash("sha256", `${importId}/${line}`, "buffer").subarray(0, 16);
  return `dev_${encodeBase32(uuidV7(at.getTime(), digest))}`;
};

/** The id of an event's message to a webhook: the same in every process, and sorted by the event's time. */
export const webhookMessageId = (webhookId: WebhookId, eventId: string, at: Date): WebhookMessageId => {
  const digest = hash("sha256", `${webhookId}/${eventId}`, "buffer").subarray(0, 16);
  return `msg_${encodeBase32(uuidV7(at.getTime(), digest))}`;
};

/** The id of a notification that follows from something else: the same each time, and sorted by its time. */
export const derivedNotificationId = (seed: string, at: Date): NotificationId =>
  `ntf_${encodeBase32(uuidV7(at.getTime(), hash("sha256", seed, "buffer").subarray(0, 16)))}`;

/** A lower bound of the ids created at or after a time. */
const firstId =
  <Id extends string>(kind: Kind) =>
  (at: Date): Id =>
    `${prefixes[kind]}_${encodeBase32(uuidV7(Math.max(0, at.getTime()), new Uint8Array(16)))}` as Id;

export const firstDeviceId = firstId<DeviceId>("device");
export const firstTopicId = firstId<TopicId>("topic");
export const firstNotificationId = firstId<NotificationId>("notification");
export const firstWebhookId = firstId<WebhookId>("webhook");
export const firstWebhookMessageId = firstId<WebhookMessageId>("message");

/** The 16 bytes after an id's prefix. */
export const idBytes = (id: string): Uint8Array => decodeBase32(id.slice(4));

/** The time when an id was created. */
export const idTime = (id: string): Date =>
  new Date(
    idBytes(id)
      .subarray(0, 6)
      .reduce((time, byte) => time * 256 + byte, 0),
  );

/** The number of buckets into which a project's devices are partitioned. A page of an expansion is a range of buckets. */
export const bucketCount = 4096;

/** The bucket of an id, 0 to 4095: FNV-1a, so that devices registered together spread evenly. */
export const bucketOf = (id: DeviceId | NotificationId): number => {
  let hash = 0x811c9dc5;
  for (let index = 0; index < id.length; index++) hash = Math.imul(hash ^ id.charCodeAt(index), 0x01000193);
  return ((hash >>> 16) ^ hash) & (bucketCount - 1);
};
