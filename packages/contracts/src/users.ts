import { hash } from "node:crypto";
import { z } from "zod";
import type { ProjectId } from "./ids.ts";

/** A prefix of a user's id. */
export const UserIdPrefix = z
  .string()
  .regex(/^[!-.0-~]{1,128}$/, "must be 1 to 128 visible ASCII characters without `/`");

/**
 * The id that the app's backend gives a user: 1 to 128 visible ASCII characters without `/`. `.` and `..` are refused, so that every id
 * fits into a path. Herald does not interpret it.
 */
export const UserId = UserIdPrefix.refine((id) => id !== "." && id !== "..", "may not be `.` or `..`").meta({
  id: "UserId",
  description: "The id that your backend gives a user. Use an opaque one: no name, email address or phone number",
  examples: ["u_8412"],
});
export type UserId = z.infer<typeof UserId>;

/** More than a user token needs. */
const maxUserTokenBytes = 4_096;

/** A JWT (RFC 7519) in its compact form; registry verifies it. */
export const UserToken = z
  .string()
  .max(maxUserTokenBytes, `must be at most ${maxUserTokenBytes} characters`)
  .regex(/^[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*$/, "must be a JWT: three parts in base64url, joined by `.`")
  .meta({ id: "UserToken", description: "A JWT that your backend signs when the user logs in" });

/** Replaces a user id in data that must not contain it, such as records of an erasure: a SHA-256 in hex, different in every project. */
export const userKey = (projectId: ProjectId, userId: string): string =>
  hash("sha256", `${projectId}/${userId}`, "hex");

/** Replaces a device or a push token as a target, as {@link userKey} replaces a user. No user has a key with a space. */
export const targetKey = (projectId: ProjectId, target: string): string =>
  hash("sha256", `${projectId} ${target}`, "hex");

/** Replaces an erased user in rows that are kept. It is not a valid user id. */
export const erasedUser = ".";

/** Replaces an erased user in targets: an id that no device can have. */
export const erasedTarget = "device:dev_00000000000000000000000000";
