import { errors } from "@herald/contracts";
import { HeraldError } from "./herald-error.ts";

const mask = "[masked]";

/** Names, in lower case without `_` and `-`, whose values are secrets or personal content. */
const names = new Set([
  "auth",
  "bodies",
  "body",
  "certificate",
  "content",
  "headers",
  "identifier",
  "identifiers",
  "key",
  "keys",
  "metadata",
  "p256dh",
  "payload",
  "payloads",
  "pem",
  "previousidentifier",
  "query",
  "serviceaccount",
  "setcookie",
  "title",
]);

/** The endings of further such names: `pushToken`, `admin_token`, `masterKey`. `tokenHash` and `tokenId` stay readable. */
const ends =
  /(?:tokens?|secrets?|passwords?|passphrase|authorization|credentials?|cookies?|privatekey|apikey|masterkey|encryptionkey|signingkey)$/;

const sensitive = (name: string): boolean => {
  const plain = name.toLowerCase().replaceAll(/[_-]/g, "");
  return names.has(plain) || ends.test(plain);
};

/** Deeper or wider values do not belong in a log line. The limits also end cycles. */
const deepest = 6;
const widest = 100;

/** An error without the fields that libraries add: drivers and parsers store documents and bodies in them. */
const describeError = (error: Error, depth: number): Record<string, unknown> => {
  const code = "code" in error && ["string", "number"].includes(typeof error.code) ? error.code : undefined;
  const known = error instanceof HeraldError && errors[error.code].status < 500;
  return {
    type: error.name,
    message: scrub(error.message),
    ...(code === undefined ? {} : { code }),
    // The caller caused a refusal: a stack trace of Herald's code does not help.
    ...(known || error.stack === undefined ? {} : { stack: scrub(error.stack) }),
    ...(error.cause === undefined || depth >= deepest ? {} : { cause: copy(error.cause, depth + 1) }),
  };
};

const withoutQuery = (url: string): string => scrub(url.split("?", 1)[0] ?? "");

const copy = (value: unknown, depth: number): unknown => {
  if (typeof value !== "object" || value === null) return value;
  if (value instanceof Error) return describeError(value, depth);
  if (value instanceof Date) return value;
  if (ArrayBuffer.isView(value)) return `[${value.byteLength} bytes]`;
  if (depth >= deepest) return "[…]";
  if (Array.isArray(value)) return value.slice(0, widest).map((item) => copy(item, depth + 1));
  if ("toJSON" in value && typeof value.toJSON === "function") return copy(value.toJSON(), depth + 1);
  return redactAt(value as Record<string, unknown>, depth);
};

const redactAt = (line: Record<string, unknown>, depth: number): Record<string, unknown> => {
  const safe: Record<string, unknown> = {};
  let left = widest;
  for (const [name, value] of Object.entries(line)) {
    if (left-- === 0) break;
    if (value === undefined || typeof value === "function") continue;
    if (typeof value === "number" || typeof value === "boolean" || value === null) safe[name] = value;
    else if (sensitive(name)) safe[name] = mask;
    else if (typeof value === "string") safe[name] = /url$/i.test(name) ? withoutQuery(value) : value;
    else safe[name] = copy(value, depth + 1);
  }
  return safe;
};

/** Masks secrets and contents in a log line's fields by name, at any depth, and reduces errors to safe fields. */
export const redact = (line: Record<string, unknown>): Record<string, unknown> => redactAt(line, 0);

/**
 * Patterns of secrets, masked anywhere in a log line. A second line of defence: the first is never to log them. Each pattern works on plain
 * text and on a line of JSON.
 */
const patterns: readonly [RegExp, string][] = [
  [/\b(hpt|hdc|his|hop|hss|hoc)_[A-Za-z0-9_-]{8,}/g, "$1_[masked]"],
  // Open tokens: version, key id, device, platform since version 2, expiry, mac.
  [/\bv[12](?:\.[A-Za-z0-9_-]+){3,4}\.[A-Za-z0-9_-]{16,}/g, "[open token masked]"],
  // JSON Web Tokens.
  [/\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*/g, "[jwt masked]"],
  [/\b(Bearer|Basic|vapid|WebPush) +[A-Za-z0-9._~+/=,-]{8,}/gi, "$1 [masked]"],
  [/-----BEGIN [A-Z ]+-----.*?-----END [A-Z ]+-----/gs, "[pem masked]"],
  [/\b([a-z][a-z0-9+.-]{1,20}:\/\/)[^\s/@"'\\]+@/gi, "$1[masked]@"],
  [/\b((?:https?|mongodb|nats|tls|wss?):\/\/[^\s?"'\\#]*)\?[^\s"'\\#]*/gi, "$1?[masked]"],
  // The database driver quotes the duplicate value.
  [/(dup key: )\{.*?\}/g, "$1[masked]"],
  // V8 quotes the text that is not JSON.
  [
    /Unexpected (?:token|string|number|identifier|non-whitespace).*? (?:is not valid JSON|in JSON at position \d+)/gs,
    "not valid JSON",
  ],
];

/** Every pattern's matches contain one of these, so most lines need only this test. */
const suspicious =
  /hpt_|hdc_|his_|hop_|hss_|hoc_|v[12]\.|eyJ|bearer|basic|vapid|webpush|-----BEGIN|:\/\/|dup key|Unexpected /i;

/** The text with everything masked that looks like a secret. */
export const scrub = (text: string): string => {
  if (!suspicious.test(text)) return text;
  return patterns.reduce((rest, [pattern, mask]) => rest.replace(pattern, mask), text);
};

/** What a terminal acts on, without what JSON escapes anyway. */
const active = /[\x7f-\x9f\p{Cf}\u2028\u2029]/gu;

/** A line of JSON without what a terminal acts on: devices and senders write such characters. It stays equal when it is parsed. */
export const escapeActive = (line: string): string =>
  line.replaceAll(active, (found) =>
    found
      .split("")
      .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`)
      .join(""),
  );
