import { isUtf8 } from "node:buffer";
import type { IncomingMessage } from "node:http";
import type { Transform } from "node:stream";
import { createGunzip, createInflate } from "node:zlib";
import { HeraldError } from "../herald-error.ts";
import type { ReserveMemory } from "./address-limits.ts";

/** Deeper than any valid body (`metadata` ends at 5, a provider override far earlier), and shallow enough for recursive code. */
const maxDepth = 32;

/** More than most routes need: metadata and identifiers of 16 KiB each have at most 16,000. Validation visits each value several times. */
const defaultMaxValues = 20_000;
/** More than any object needs: `data`, for example, is part of a payload of 4 KiB. */
const maxFields = 1_000;

/** A field takes at least four bytes, so smaller bodies need no count. */
const countFromBytes = 4 * maxFields;

const [quote, backslash, comma, openBrace, openBracket, closeBrace, closeBracket] = Buffer.from('"\\,{[}]');

/**
 * Finds too many values, fields or levels by counting commas and brackets before the parser runs, because parsing costs most. Counts of
 * invalid JSON may be wrong; the parser refuses it anyway.
 */
const sizeProblem = (source: Buffer | string, maxValues: number): string | undefined => {
  if (source.length < countFromBytes) return undefined;
  const bytes = typeof source === "string" ? Buffer.from(source) : source;
  /** One entry per open list (undefined) or object (its commas so far). */
  const fields: (number | undefined)[] = [];
  let values = 1;
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at];
    if (byte === quote) {
      for (at++; at < bytes.length && bytes[at] !== quote; at++) if (bytes[at] === backslash) at++;
    } else if (byte === openBrace || byte === openBracket) {
      values++;
      if (fields.push(byte === openBrace ? 0 : undefined) > maxDepth)
        return `body: may be nested at most ${maxDepth} deep`;
    } else if (byte === closeBrace || byte === closeBracket) fields.pop();
    else if (byte === comma) {
      values++;
      const own = fields.at(-1);
      if (own !== undefined) {
        fields[fields.length - 1] = own + 1;
        if (own + 2 > maxFields) return `body: an object may have at most ${maxFields} fields`;
      }
    }
    if (values > maxValues) return `body: may have at most ${maxValues} values`;
  }
  return undefined;
};

/** Refuses deep values, and `__proto__`, which a later merge would use as the prototype. Does not recurse. */
const shapeProblem = (root: unknown): string | undefined => {
  const left: { value: unknown; depth: number }[] = [{ value: root, depth: 1 }];
  for (let next = left.pop(); next; next = left.pop()) {
    const { value, depth } = next;
    if (typeof value !== "object" || value === null) continue;
    if (depth > maxDepth) return `body: may be nested at most ${maxDepth} deep`;
    if (Object.hasOwn(value, "__proto__")) return "body: a field may not be called `__proto__`";
    for (const inner of Object.values(value))
      if (typeof inner === "object") left.push({ value: inner, depth: depth + 1 });
  }
  return undefined;
};

/** UTF-8 has no half of a surrogate pair, but JSON may escape one, as a program does that cuts texts between code units. */
const escapesSurrogate = (text: string): boolean => text.includes("\\ud") || text.includes("\\uD");

/**
 * Replaces halves of emoji in texts by U+FFFD: providers refuse them or show nothing, and databases replace them anyway. Fields whose names
 * have one are refused, because two names could become one.
 */
const wellFormed = (value: unknown, path = ""): unknown => {
  if (typeof value === "string") return value.toWellFormed();
  if (typeof value !== "object" || value === null) return value;
  const fields = value as Record<string, unknown>;
  for (const [name, inner] of Object.entries(fields)) {
    if (!name.isWellFormed())
      throw new HeraldError(
        "validation-failed",
        `${path || "body"}: the name of a field has half an emoji, a surrogate without its pair`,
      );
    fields[name] = wellFormed(inner, path === "" ? name : `${path}.${name}`);
  }
  return value;
};

/** Accepts `application/json` or `application/…+json` in UTF-8, the only charset that RFC 8259 allows between systems. */
const isJson = (contentType: string): boolean => {
  if (contentType === "application/json") return true;
  const [media = "", ...parameters] = contentType.toLowerCase().split(";");
  if (!/^application\/(?:[a-z0-9.!#$&^_-]+\+)?json$/.test(media.trim())) return false;
  return parameters.every((parameter) => {
    const [name = "", value = ""] = parameter.split("=", 2);
    return name.trim() !== "charset" || /^"?utf-?8"?$/.test(value.trim());
  });
};

const tooLarge = (limitBytes: number) =>
  new HeraldError("body-too-large", `body: is larger than ${limitBytes} bytes, counted after decompression`);

const incompleteBody = () =>
  new HeraldError("malformed-request", "body: could not be read as content-length and content-encoding announce it");

/** Also strips a byte order mark. */
const utf8 = new TextDecoder("utf-8", { fatal: true });

const byteOrderMark = "\ufeff";

const textOf = (source: Buffer | string): string => {
  if (typeof source === "string") return source.startsWith(byteOrderMark) ? source.slice(1) : source;
  if (!isUtf8(source)) throw new HeraldError("malformed-json", "body: is not UTF-8");
  return utf8.decode(source);
};

const parseText = (text: string): unknown => {
  try {
    return JSON.parse(text);
  } catch {
    throw new HeraldError("malformed-json", "body: is not JSON; an object in UTF-8 is accepted");
  }
};

/** Overhead of a chunk. A body may arrive byte by byte. */
const bytesPerChunk = 256;
/** Memory for decompression: its window, and a piece of its output. */
const decoderBytes = 65_536;

/** Not Brotli: each body would need a window of up to 16 MiB. */
const decoders: ReadonlyMap<string, () => Transform> = new Map([
  ["gzip", createGunzip],
  ["deflate", createInflate],
]);

/** The decompressed bytes of a body. Throws the HeraldError that refuses it. */
const readBytes = (request: IncomingMessage, limitBytes: number, reserve: ReserveMemory): Promise<Buffer> => {
  const coding = (request.headers["content-encoding"] ?? "identity").toLowerCase();
  const createDecoder = decoders.get(coding);
  if (createDecoder === undefined && coding !== "identity")
    throw new HeraldError("unsupported-media-type", "content-encoding: must be gzip, deflate or none");
  // The client disconnected during the verification of its credential; no later event reports it.
  if (request.destroyed) throw incompleteBody();
  if (createDecoder) reserve(decoderBytes);
  const decoded = createDecoder?.();
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let bytes = 0;
    let failed = false;
    const fail = (error: unknown) => {
      failed = true;
      chunks.length = 0;
      if (decoded) {
        request.unpipe(decoded);
        decoded.destroy();
        // Unread bytes would block the response on this connection.
        request.resume();
      }
      reject(error);
    };
    const body = decoded ? request.pipe(decoded) : request;
    body.on("data", (chunk: Buffer) => {
      if (failed) return;
      bytes += chunk.length;
      try {
        if (bytes > limitBytes) throw tooLarge(limitBytes);
        reserve(chunk.length + bytesPerChunk);
        chunks.push(chunk);
      } catch (error) {
        fail(error);
      }
    });
    body.once("end", () => resolve(Buffer.concat(chunks, bytes)));
    decoded?.once("error", () => fail(incompleteBody()));
    request.once("error", () => fail(incompleteBody()));
    request.once("close", () => {
      if (!request.readableEnded) fail(incompleteBody());
    });
  });
};

/**
 * Parses untrusted JSON, bounded in values, fields and depth.
 * @throws HeraldError `malformed-json`, `validation-failed`.
 */
export const parseJson = (source: Buffer | string, maxValues: number = defaultMaxValues): unknown => {
  const tooMuch = sizeProblem(source, maxValues);
  if (tooMuch !== undefined) throw new HeraldError("validation-failed", tooMuch);
  const text = textOf(source);
  const body = parseText(text);
  const problem = shapeProblem(body);
  if (problem !== undefined) throw new HeraldError("validation-failed", problem);
  return escapesSurrogate(text) ? wellFormed(body) : body;
};

/**
 * Enough for 1,000 targets of 900 bytes each (a topic takes 30, an FCM token 170, a Web Push endpoint up to 500). With ids and headers it
 * still fits into one bus message, which has at most 1 MiB by default.
 */
export const defaultBodyLimitBytes = 960 * 1024;

/**
 * Reads the JSON body of a request; undefined without one. Throws the HeraldError that refuses it. `limitBytes` counts bytes after
 * decompression, `maxValues` all values of the JSON.
 */
export const createReadBody =
  (limitBytes: number, maxValues: number = defaultMaxValues) =>
  async (request: IncomingMessage, reserve: ReserveMemory): Promise<unknown> => {
    const { "content-length": length, "transfer-encoding": transfer, "content-type": type } = request.headers;
    if (transfer === undefined && (length === undefined || Number(length) === 0)) return undefined;
    if (type === undefined || !isJson(type))
      throw new HeraldError("unsupported-media-type", "content-type: must be application/json, in UTF-8");
    // Refuse a body that is too large before reading it.
    if (Number(length) > limitBytes) throw tooLarge(limitBytes);
    const bytes = await readBytes(request, limitBytes, reserve);
    if (bytes.length === 0) return undefined;
    return parseJson(bytes, maxValues);
  };
