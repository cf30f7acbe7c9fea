import { errors } from "@herald/contracts";
import { HeraldError } from "./herald-error.ts";
import { scrub } from "./scrub.ts";

const mask = "[masked]";

/** Names, in lower case without `_` and `-`, whose values are a secret or somebody's content. */
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

/** The same for ends of names: `pushToken`, `admin_token`, `masterKey`. `tokenHash` and `tokenId` stay readable. */
const ends =
  /(?:tokens?|secrets?|passwords?|passphrase|authorization|credentials?|cookies?|privatekey|apikey|masterkey|encryptionkey|signingkey)$/;

const sensitive = (name: string): boolean => {
  const plain = name.toLowerCase().replaceAll(/[_-]/g, "");
  return names.has(plain) || ends.test(plain);
};

/** Deeper or wider things are no log line; the limits also end cycles. */
const deepest = 6;
const widest = 100;

/** An error without what libraries hang onto it: drivers and parsers keep documents and bodies there. */
const describeError = (error: Error, depth: number): Record<string, unknown> => {
  const code = "code" in error && ["string", "number"].includes(typeof error.code) ? error.code : undefined;
  const known = error instanceof HeraldError && errors[error.code].status < 500;
  return {
    type: error.name,
    message: scrub(error.message),
    ...(code === undefined ? {} : { code }),
    // A refusal is caused by the caller: a stack trace of our own code does not help.
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

/** A log line's fields with secrets and contents masked by name, at any depth, and errors reduced to what is safe to print. */
export const redact = (line: Record<string, unknown>): Record<string, unknown> => redactAt(line, 0);
