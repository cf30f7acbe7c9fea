import { hash } from "node:crypto";
import { z } from "zod";
import type { ProjectId } from "./ids.ts";

/**
 * The id that the app's backend gives a user: 1 to 128 visible ASCII characters without `/`, and neither `.` nor `..`, so that it
 * fits a path. It is opaque to Herald.
 */
export const UserId = z
  .string()
  .regex(/^[!-.0-~]{1,128}$/, "must be 1 to 128 visible ASCII characters without `/`")
  .refine((id) => id !== "." && id !== "..", "may not be `.` or `..`")
  .meta({
    id: "UserId",
    description: "The id that your backend gives a user. Use an opaque one: no name, email address or phone number",
    examples: ["u_8412"],
  });
export type UserId = z.infer<typeof UserId>;

/** Longer ones carry more than a user token needs. */
const maxUserTokenBytes = 4_096;

/** A JWT (RFC 7519) in its compact form; registry verifies it. */
export const UserToken = z
  .string()
  .max(maxUserTokenBytes, `must be at most ${maxUserTokenBytes} characters`)
  .regex(/^[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*$/, "must be a JWT: three parts in base64url, joined by `.`")
  .meta({ id: "UserToken", description: "A JWT that your backend signs when the user logs in" });

/** Replaces a user id where the id must not stay, such as in records of an erasure: a SHA-256 in hex, different in every project. */
export const userKey = (projectId: ProjectId, userId: string): string =>
  hash("sha256", `${projectId}/${userId}`, "hex");

/** Replaces an erased user in rows that stay. It is not a valid user id. */
export const erasedUser = ".";

/** Replaces an erased user in targets: an id that no device can have. */
export const erasedTarget = "device:dev_00000000000000000000000000";
