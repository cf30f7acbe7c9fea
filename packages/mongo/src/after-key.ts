import { hash } from "node:crypto";
import { HeraldError } from "@herald/kit";

/** Enough to notice a key that was cut off or typed by hand. */
const checksumLength = 4;
const checksum = (key: string): string => hash("sha256", `after ${key}`, "base64url").slice(0, checksumLength);

/** The opaque `next` of a walk: the last row's key and a checksum, in base64url. */
export const encodeAfter = (key: string): string => checksum(key) + Buffer.from(key).toString("base64url");

/**
 * The key behind an `after`; undefined for an empty one, which begins the walk.
 * @throws HeraldError `validation-failed` when it is not a `next` that was given out.
 */
export const decodeAfter = (after: string): string | undefined => {
  if (after === "") return undefined;
  const key = Buffer.from(after.slice(checksumLength), "base64url").toString();
  if (key !== "" && encodeAfter(key) === after) return key;
  throw new HeraldError("validation-failed", "after: must be empty, to begin, or the `next` of the answer before");
};
