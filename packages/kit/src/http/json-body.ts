import { isUtf8 } from "node:buffer";
import { json, type Request, type RequestHandler, type Response } from "express";
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
  const [media = "", ...parameters] = contentType.toLowerCase().split(";");
  if (!/^application\/(?:[a-z0-9.!#$&^_-]+\+)?json$/.test(media.trim())) return false;
  return parameters.every((parameter) => {
    const [name = "", value = ""] = parameter.split("=", 2);
    return name.trim() !== "charset" || /^"?utf-?8"?$/.test(value.trim());
  });
};

const tooLarge = (limitBytes: number) =>
  new HeraldError("body-too-large", `body: is larger than ${limitBytes} bytes, counted after decompression`);

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
      return error instanceof Error && "status" in error && error.status === 400
        ? new HeraldError(
            "malformed-request",
            "body: could not be read as content-length and content-encoding announce it",
          )
        : error;
  }
};

/** Reads a JSON body of at most so many bytes, counted after decompression, into `request.body`; undefined without a body. */
export const jsonBody = (limitBytes: number): RequestHandler => {
  const read = json({
    limit: limitBytes,
    strict: false,
    type: () => true,
    verify: (_request, _response, bytes) => {
      if (!isUtf8(bytes)) throw Object.assign(new Error("not UTF-8"), { type: notUtf8 });
    },
  });
  return (request, response, next) => {
    const { "content-length": length, "transfer-encoding": transfer, "content-type": type } = request.headers;
    const empty = transfer === undefined && (length === undefined || length === "0");
    if (empty) {
      next();
      return;
    }
    if (type === undefined || !isJson(type)) {
      next(new HeraldError("unsupported-media-type", "content-type: must be application/json, in UTF-8"));
      return;
    }
    // The reader would answer only after all of it had come.
    if (Number(length) > limitBytes) {
      next(tooLarge(limitBytes));
      return;
    }
    read(request, response, (error?: unknown) => {
      if (error) {
        next(translate(error, limitBytes));
        return;
      }
      const problem = shapeProblem(request.body);
      next(problem === undefined ? undefined : new HeraldError("validation-failed", problem));
    });
  };
};

/** {@link jsonBody} for a route that reads its body when it knows that it wants it. Throws what is wrong with it. */
export const readBody = (limitBytes: number): ((request: Request, response: Response) => Promise<void>) => {
  const read = jsonBody(limitBytes);
  return (request, response) =>
    new Promise((resolve, reject) => {
      void read(request, response, (error?: unknown) => (error === undefined ? resolve() : reject(error)));
    });
};
