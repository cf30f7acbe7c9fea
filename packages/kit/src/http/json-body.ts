import { isUtf8 } from "node:buffer";
import type { IncomingMessage } from "node:http";
import type { Transform } from "node:stream";
import { createGunzip, createInflate } from "node:zlib";
import type { RequestHandler } from "express";
import { HeraldError } from "../herald-error.ts";
import type { Hold } from "./held-bytes.ts";

/**
 * Deeper than anything the interface knows (`metadata` ends at 5, a provider override far before this), and shallow enough
 * for code that walks a value by calling itself.
 */
const deepest = 32;

/**
 * More than any route takes: metadata and identifiers of 16 KiB each have 16,000 values at most. What comes behind looks at each
 * value several times, and says of each what is wrong with it.
 */
const maxValues = 20_000;
/** More than any object has whose fields are counted nowhere else, such as `data`, which is part of a payload of 4 KiB. */
const maxFields = 1_000;

/** Each field takes four bytes at least, so what is smaller has neither too many fields nor too many values. */
const countFromBytes = 4 * maxFields;

const [quote, backslash, comma, openBrace, openBracket, closeBrace, closeBracket] = Buffer.from('"\\,{[}]');

/**
 * What has too many parts, by its commas and brackets: parsing costs most where every key is another one, so that is found before.
 * What is no JSON may be counted wrong, and is refused all the same.
 */
const sizeProblem = (bytes: Buffer): string | undefined => {
  if (bytes.length < countFromBytes) return undefined;
  /** Of each list and object that is open: undefined for a list, else the commas that its fields have between them. */
  const fields: (number | undefined)[] = [];
  let values = 1;
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at];
    if (byte === quote) {
      for (at++; at < bytes.length && bytes[at] !== quote; at++) if (bytes[at] === backslash) at++;
    } else if (byte === openBrace || byte === openBracket) {
      values++;
      if (fields.push(byte === openBrace ? 0 : undefined) > deepest)
        return `body: may be nested at most ${deepest} deep`;
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

/** Where a value is too deep or carries `__proto__`, which a later merge would take for the prototype. Does not recurse. */
const shapeProblem = (root: unknown): string | undefined => {
  const left: { value: unknown; depth: number }[] = [{ value: root, depth: 1 }];
  for (let next = left.pop(); next; next = left.pop()) {
    const { value, depth } = next;
    if (typeof value !== "object" || value === null) continue;
    if (depth > deepest) return `body: may be nested at most ${deepest} deep`;
    if (Object.hasOwn(value, "__proto__")) return "body: a field may not be called `__proto__`";
    for (const inner of Object.values(value))
      if (typeof inner === "object") left.push({ value: inner, depth: depth + 1 });
  }
  return undefined;
};

/** `application/json` or `application/…+json`, in UTF-8, the only charset that JSON between systems may have (RFC 8259). */
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

const brokenOff = () =>
  new HeraldError("malformed-request", "body: could not be read as content-length and content-encoding announce it");

/** Strips a byte order mark. */
const utf8 = new TextDecoder("utf-8", { fatal: true });

const parseText = (bytes: Buffer): unknown => {
  if (!isUtf8(bytes)) throw new HeraldError("malformed-json", "body: is not UTF-8");
  try {
    return JSON.parse(utf8.decode(bytes));
  } catch {
    throw new HeraldError("malformed-json", "body: is not JSON; an object in UTF-8 is accepted");
  }
};

/** What a chunk costs beside its bytes: a body that comes byte by byte is a list of chunks. */
const bytesPerChunk = 256;
/** What unpacking needs for itself: its window, and a piece of what comes out. */
const bytesToUnpack = 65_536;

/** Brotli is none of them: each body would need a window of up to 16 MiB. */
const unpackers: ReadonlyMap<string, () => Transform> = new Map([
  ["gzip", createGunzip],
  ["deflate", createInflate],
]);

/** The bytes of a body of at most so many, unpacked. Throws what is wrong with it. */
const readBytes = (request: IncomingMessage, limitBytes: number, hold: Hold): Promise<Buffer> => {
  const coding = (request.headers["content-encoding"] ?? "identity").toLowerCase();
  const unpack = unpackers.get(coding);
  if (unpack === undefined && coding !== "identity")
    throw new HeraldError("unsupported-media-type", "content-encoding: must be gzip, deflate or none");
  // It left while its credential was looked up, and will not say so again.
  if (request.destroyed) throw brokenOff();
  if (unpack) hold(bytesToUnpack);
  const unpacked = unpack?.();
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let bytes = 0;
    let failed = false;
    const fail = (error: unknown) => {
      failed = true;
      chunks.length = 0;
      if (unpacked) {
        request.unpipe(unpacked);
        unpacked.destroy();
        // What is still to come is let go, or the connection could not say anything else.
        request.resume();
      }
      reject(error);
    };
    const body = unpacked ? request.pipe(unpacked) : request;
    body.on("data", (chunk: Buffer) => {
      if (failed) return;
      bytes += chunk.length;
      try {
        if (bytes > limitBytes) throw tooLarge(limitBytes);
        hold(chunk.length + bytesPerChunk);
        chunks.push(chunk);
      } catch (error) {
        fail(error);
      }
    });
    body.once("end", () => resolve(Buffer.concat(chunks, bytes)));
    unpacked?.once("error", () => fail(brokenOff()));
    request.once("error", () => fail(brokenOff()));
    request.once("close", () => {
      if (!request.readableEnded) fail(brokenOff());
    });
  });
};

/** Reads the JSON body of a request, undefined without one. Throws what is wrong with it. */
export type ReadBody = (request: IncomingMessage, hold: Hold) => Promise<unknown>;

/** For bodies of at most so many bytes, counted after decompression. */
export const createReadBody =
  (limitBytes: number): ReadBody =>
  async (request, hold) => {
    const { "content-length": length, "transfer-encoding": transfer, "content-type": type } = request.headers;
    if (transfer === undefined && (length === undefined || Number(length) === 0)) return undefined;
    if (type === undefined || !isJson(type))
      throw new HeraldError("unsupported-media-type", "content-type: must be application/json, in UTF-8");
    // The reader would answer only after all of it had come.
    if (Number(length) > limitBytes) throw tooLarge(limitBytes);
    const bytes = await readBytes(request, limitBytes, hold);
    if (bytes.length === 0) return undefined;
    const tooMuch = sizeProblem(bytes);
    if (tooMuch !== undefined) throw new HeraldError("validation-failed", tooMuch);
    const body = parseText(bytes);
    const problem = shapeProblem(body);
    if (problem !== undefined) throw new HeraldError("validation-failed", problem);
    return body;
  };

/** {@link createReadBody} as middleware, into `request.body`, for servers that only their operators reach. */
export const jsonBody = (limitBytes: number): RequestHandler => {
  const read = createReadBody(limitBytes);
  return async (request, _response, next) => {
    request.body = await read(request, () => {});
    next();
  };
};
