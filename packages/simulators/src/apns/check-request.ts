import type { IncomingHttpHeaders } from "node:http2";
import { type Refusal, refuse } from "../script/apns-reasons.ts";
import { parseStrictJson } from "../strict-json.ts";

/** Push types, with the suffix that Apple requires for their topic. */
export const endingsOfPushTypes: Readonly<Record<string, string>> = {
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
/** 32 bytes today, but Apple does not guarantee the length, and tokens of live activities are longer. */
const deviceToken = /^(?:[0-9a-f]{2}){32,100}$/i;
const uuid = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/** The largest payload of all push types. The server keeps no more of a body. */
export const maxApnsBody = maxVoipPayload;

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

/** The headers of which a request has at most one. */
const single = ["apns-topic", "apns-push-type", "apns-priority", "apns-expiration", "apns-id"] as const;

/** Checks all headers that Herald must send, also those for which Apple has defaults. */
export function checkHeaders(headers: IncomingHttpHeaders): Refusal | undefined {
  const textOf = (name: string) => headers[name]?.toString();
  const [topic, pushType, priority, expiration, id] = single.map(textOf);
  const collapseId = textOf("apns-collapse-id");

  // Node joins repeated headers with a comma. A single value of these headers never contains one.
  const repeated = single.find((name) => textOf(name)?.includes(","));
  if (repeated !== undefined) return refuse("DuplicateHeaders", `${repeated}: more than once`);

  if (!topic) return refuse("MissingTopic", "apns-topic: missing");
  if (!/^[A-Za-z0-9.-]+$/.test(topic)) return refuse("BadTopic", "apns-topic: not a bundle id");

  if (pushType === undefined) return refuse("InvalidPushType", "apns-push-type: missing");
  const ending = Object.hasOwn(endingsOfPushTypes, pushType) ? endingsOfPushTypes[pushType] : undefined;
  if (ending === undefined)
    return refuse("InvalidPushType", `apns-push-type: not one of ${Object.keys(endingsOfPushTypes).join(", ")}`);
  if (!topic.endsWith(ending)) return refuse("BadTopic", `apns-topic: ends with ${ending} for push type ${pushType}`);

  if (priority === undefined) return refuse("BadPriority", "apns-priority: missing");
  if (!["10", "5", "1"].includes(priority)) return refuse("BadPriority", "apns-priority: not one of 10, 5, 1");
  if (priority === "10" && pushType === "background")
    return refuse("BadPriority", "apns-priority: a background push may not have 10");

  if (expiration === undefined) return refuse("BadExpirationDate", "apns-expiration: missing");
  if (!/^\d{1,10}$/.test(expiration))
    return refuse("BadExpirationDate", "apns-expiration: not 0 or a time in seconds since 1970");

  if (id === undefined) return refuse("BadMessageId", "apns-id: missing");
  if (!uuid.test(id)) return refuse("BadMessageId", "apns-id: not a UUID in its 8-4-4-4-12 form");

  if (collapseId !== undefined && Buffer.byteLength(collapseId) > maxCollapseId)
    return refuse("BadCollapseId", `apns-collapse-id: more than ${maxCollapseId} bytes`);
  return undefined;
}

/** Checks the payload. `payload` may be incomplete when `size` exceeds `maxApnsBody`. */
export function checkPayload(pushType: string, payload: string, size: number): Refusal | undefined {
  const limit = pushType === "voip" ? maxVoipPayload : maxPayload;
  if (size > limit) return refuse("PayloadTooLarge", `payload: ${size} bytes, at most ${limit}`);
  if (size === 0) return refuse("PayloadEmpty", "payload: empty");
  let document: unknown;
  try {
    document = parseStrictJson(payload);
  } catch (error) {
    return refuse("PayloadEmpty", `payload: not JSON: ${(error as Error).message}`);
  }
  if (!isObject(document)) return refuse("PayloadEmpty", "payload: not a JSON object");
  // An MDM push has its own dictionary without `aps`.
  if (pushType !== "mdm" && !isObject(document.aps)) return refuse("PayloadEmpty", "payload: no aps object");
  return undefined;
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);
