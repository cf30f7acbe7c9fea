import type { FieldList } from "./field-decoder.ts";

export type AnswerHeaders = Readonly<Record<string, string | undefined>>;

export type AnswerFields =
  | { readonly kind: "final"; readonly status: number; readonly headers: AnswerHeaders; readonly contentLength: number }
  | { readonly kind: "informational" }
  | { readonly kind: "malformed"; readonly problem: string };

/** Inherits nothing, so that no name means anything; quicker to make than an object whose prototype is null. */
class Headers {
  [name: string]: string | undefined;
}
Object.setPrototypeOf(Headers.prototype, null);
Reflect.deleteProperty(Headers.prototype, "constructor");

export const noHeaders: AnswerHeaders = Object.freeze(new Headers());
const informational: AnswerFields = { kind: "informational" };
const malformed = (problem: string): AnswerFields => ({ kind: "malformed", problem });

const statusPattern = /^[1-9][0-9][0-9]$/;
const namePattern = /^[a-z0-9!#$%&'*+.^_`|~-]+$/;
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what a value must not hold
const forbiddenInValue = /[\0-\x08\x0a-\x1f\x7f]/;
const connectionFields = new Set(["connection", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade"]);
const lengthPattern = /^[0-9]{1,15}$/;

/** What the fields before an answer's body say, held to RFC 9113, 8.1 and 8.3. */
export function readAnswerFields({ names, values, count, tooLarge }: FieldList): AnswerFields {
  if (tooLarge) return malformed("its headers are too large");
  // A pseudo header comes first, and an answer has one.
  const status = values[0];
  if (count === 0 || names[0] !== ":status" || status === undefined || !statusPattern.test(status))
    return malformed("it has no status");
  if (status.startsWith("1")) return status === "101" ? malformed("it switches protocols") : informational;
  if (count === 1) return { kind: "final", status: Number(status), headers: noHeaders, contentLength: -1 };
  const headers = new Headers();
  for (let at = 1; at < count; at++) {
    const name = names[at] as string;
    const value = values[at] as string;
    if (!namePattern.test(name)) return malformed("one of its headers has no proper name");
    if (connectionFields.has(name)) return malformed(`the header ${name} has no place in HTTP/2`);
    if (forbiddenInValue.test(value)) return malformed("one of its headers has no proper value");
    const before = headers[name];
    headers[name] = before === undefined ? value : `${before}, ${value}`;
  }
  const length = headers["content-length"];
  if (length !== undefined && !lengthPattern.test(length)) return malformed("its content-length is none");
  const contentLength = length === undefined || status === "304" ? -1 : Number(length);
  return { kind: "final", status: Number(status), headers, contentLength };
}

/** Fields behind the body are of no use here, but must not pretend to be what they are not. */
export const trailersMalformed = ({ names, count }: FieldList): boolean =>
  names.slice(0, count).some((name) => name.startsWith(":"));
