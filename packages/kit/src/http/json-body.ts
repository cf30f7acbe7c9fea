import { isUtf8 } from "node:buffer";
import type { IncomingMessage, ServerResponse } from "node:http";
import { json, type RequestHandler } from "express";
import { HeraldError } from "../herald-error.ts";

/**
 * Deeper than anything the interface knows (`metadata` ends at 5, a provider override far before this), and shallow enough
 * for code that walks a value by calling itself.
 */
const deepest = 32;

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

const notUtf8 = "herald.not-utf8";

/** What the reader of bodies says when it gives up, in Herald's words. Its errors carry the body, so none is passed on. */
const translate = (error: unknown, limitBytes: number): unknown => {
  const type = error instanceof Error && "type" in error ? error.type : undefined;
  switch (type) {
    case "entity.parse.failed":
      return new HeraldError("malformed-json", "body: is not JSON; an object in UTF-8 is accepted");
    case notUtf8:
      return new HeraldError("malformed-json", "body: is not UTF-8");
    case "entity.too.large":
      return tooLarge(limitBytes);
    case "encoding.unsupported":
      return new HeraldError("unsupported-media-type", "content-encoding: must be gzip, deflate, br or none");
    default:
      // The rest is a transfer that broke off, a length that does not fit, or compressed data that is none.
      return error instanceof Error && "status" in error && error.status === 400 ? brokenOff() : error;
  }
};

/** Strips a byte order mark, as the reader of other bodies does. */
const utf8 = new TextDecoder("utf-8", { fatal: true });

const parseText = (bytes: Buffer): unknown => {
  if (!isUtf8(bytes)) throw new HeraldError("malformed-json", "body: is not UTF-8");
  try {
    return JSON.parse(utf8.decode(bytes));
  } catch {
    throw new HeraldError("malformed-json", "body: is not JSON; an object in UTF-8 is accepted");
  }
};

/** A body that says how long it is and is not compressed, as nearly all are, costs a tenth of what the general reader takes. */
const readPlain = (request: IncomingMessage): Promise<Buffer> =>
  new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.once("end", () => resolve(Buffer.concat(chunks)));
    request.once("error", () => reject(brokenOff()));
  });

/** Reads the JSON body of a request, undefined without one. Throws what is wrong with it. */
export type ReadBody = (request: IncomingMessage, response: ServerResponse) => Promise<unknown>;

/** For bodies of at most so many bytes, counted after decompression. */
export const createReadBody = (limitBytes: number): ReadBody => {
  const general = json({
    limit: limitBytes,
    strict: false,
    type: () => true,
    verify: (_request, _response, bytes) => {
      if (!isUtf8(bytes)) throw Object.assign(new Error("not UTF-8"), { type: notUtf8 });
    },
  });
  const readGeneral: ReadBody = (request, response) =>
    new Promise((resolve, reject) => {
      general(request, response, (error?: unknown) => {
        if (error) reject(translate(error, limitBytes));
        else resolve("body" in request ? request.body : undefined);
      });
    });
  return async (request, response) => {
    const { "content-length": length, "transfer-encoding": transfer, "content-type": type } = request.headers;
    if (transfer === undefined && (length === undefined || Number(length) === 0)) return undefined;
    if (type === undefined || !isJson(type))
      throw new HeraldError("unsupported-media-type", "content-type: must be application/json, in UTF-8");
    // The reader would answer only after all of it had come.
    if (Number(length) > limitBytes) throw tooLarge(limitBytes);
    const plain = transfer === undefined && request.headers["content-encoding"] === undefined;
    const body = plain ? parseText(await readPlain(request)) : await readGeneral(request, response);
    const problem = shapeProblem(body);
    if (problem !== undefined) throw new HeraldError("validation-failed", problem);
    return body;
  };
};

/** {@link createReadBody} as middleware, into `request.body`. */
export const jsonBody = (limitBytes: number): RequestHandler => {
  const read = createReadBody(limitBytes);
  return async (request, response, next) => {
    request.body = await read(request, response);
    next();
  };
};
