import type { IncomingHttpHeaders } from "node:http2";
import { type Refusal, refuse } from "./refusal.ts";

/** Push types and what Apple wants at the end of their topic. */
const topicEndings: Readonly<Record<string, string>> = {
  alert: "",
  background: "",
  complication: ".complication",
  controls: ".push-type.controls",
  fileprovider: ".pushkit.fileprovider",
  liveactivity: ".push-type.liveactivity",
  location: ".location-query",
  mdm: "",
  pushtotalk: ".voip-ptt",
  voip: ".voip",
  widgets: ".push-type.widgets",
};

const maxPayload = 4096;
const maxVoipPayload = 5120;
const maxCollapseId = 64;

const devicePath = "/3/device/";
/** 32 bytes today; Apple says not to rely on it, and tokens of live activities are longer. */
const deviceToken = /^(?:[0-9a-f]{2}){32,100}$/i;
const uuid = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/** The biggest payload of any push type: more is not worth reading. */
export const maxBody = maxVoipPayload;

/** The device token of the path, empty when there is none. */
export const tokenOf = (path: string | undefined): string =>
  path?.startsWith(devicePath) ? path.slice(devicePath.length) : "";

export function checkPath(method: string | undefined, path: string | undefined): Refusal | undefined {
  if (method !== "POST") return refuse("MethodNotAllowed", `:method: ${method} is not POST`);
  if (!path?.startsWith(devicePath)) return refuse("BadPath", ":path: not /3/device/<token>");
  const token = path.slice(devicePath.length);
  if (token === "") return refuse("MissingDeviceToken", ":path: no token after /3/device/");
  if (/[/?#]/.test(token)) return refuse("BadPath", ":path: something follows the token");
  if (!deviceToken.test(token))
    return refuse("BadDeviceToken", ":path: the token is not 32 to 100 bytes in hexadecimal");
  return undefined;
}

/** Node joins repeated headers with a comma, which none of these may contain. */
const repeated = (value: string) => value.includes(", ");

const text = (value: string | string[] | undefined) => (Array.isArray(value) ? value.join(", ") : value);

/** Every header that Herald promises to send; `optional` ones take Apple's defaults when absent. */
export function checkHeaders(headers: IncomingHttpHeaders, allRequired: boolean): Refusal | undefined {
  const topic = text(headers["apns-topic"]);
  const pushType = text(headers["apns-push-type"]);
  const priority = text(headers["apns-priority"]);
  const expiration = text(headers["apns-expiration"]);
  const id = text(headers["apns-id"]);
  const collapseId = text(headers["apns-collapse-id"]);

  if (!topic) return refuse("MissingTopic", "apns-topic: missing");
  if (repeated(topic)) return refuse("DuplicateHeaders", "apns-topic: more than once");
  if (!/^[A-Za-z0-9.-]+$/.test(topic)) return refuse("BadTopic", "apns-topic: not a bundle id");

  if (pushType === undefined) return refuse("InvalidPushType", "apns-push-type: missing");
  if (repeated(pushType)) return refuse("DuplicateHeaders", "apns-push-type: more than once");
  const ending = Object.hasOwn(topicEndings, pushType) ? topicEndings[pushType] : undefined;
  if (ending === undefined)
    return refuse("InvalidPushType", `apns-push-type: not one of ${Object.keys(topicEndings).join(", ")}`);
  if (!topic.endsWith(ending)) return refuse("BadTopic", `apns-topic: ends with ${ending} for push type ${pushType}`);

  if (priority === undefined) {
    if (allRequired) return refuse("BadPriority", "apns-priority: missing");
  } else if (priority !== "10" && priority !== "5" && priority !== "1") {
    if (repeated(priority)) return refuse("DuplicateHeaders", "apns-priority: more than once");
    return refuse("BadPriority", "apns-priority: not one of 10, 5, 1");
  } else if (priority === "10" && pushType === "background") {
    return refuse("BadPriority", "apns-priority: a background push may not have 10");
  }

  if (expiration === undefined) {
    if (allRequired) return refuse("BadExpirationDate", "apns-expiration: missing");
  } else if (!/^\d{1,10}$/.test(expiration)) {
    if (repeated(expiration)) return refuse("DuplicateHeaders", "apns-expiration: more than once");
    return refuse("BadExpirationDate", "apns-expiration: not 0 or a time in seconds since 1970");
  }

  if (id === undefined) {
    if (allRequired) return refuse("BadMessageId", "apns-id: missing");
  } else if (!uuid.test(id)) {
    if (repeated(id)) return refuse("DuplicateHeaders", "apns-id: more than once");
    return refuse("BadMessageId", "apns-id: not a UUID in its 8-4-4-4-12 form");
  }

  if (collapseId !== undefined && Buffer.byteLength(collapseId) > maxCollapseId) {
    return refuse("BadCollapseId", `apns-collapse-id: more than ${maxCollapseId} bytes`);
  }
  return undefined;
}

/** `size` may be all that is known of a body too big to keep. */
export function checkPayload(pushType: string, payload: string, size: number): Refusal | undefined {
  const limit = pushType === "voip" ? maxVoipPayload : maxPayload;
  if (size > limit) return refuse("PayloadTooLarge", `payload: ${size} bytes, at most ${limit}`);
  if (size === 0) return refuse("PayloadEmpty", "payload: empty");
  let document: unknown;
  try {
    document = JSON.parse(payload);
  } catch {
    return refuse("PayloadEmpty", "payload: not JSON");
  }
  if (typeof document !== "object" || document === null || Array.isArray(document)) {
    return refuse("PayloadEmpty", "payload: not a JSON object");
  }
  // MDM wakes a device with its own dictionary, without aps.
  if (pushType === "mdm") return undefined;
  const { aps } = document as { aps?: unknown };
  if (typeof aps !== "object" || aps === null || Array.isArray(aps))
    return refuse("PayloadEmpty", "payload: no aps object");
  return undefined;
}
