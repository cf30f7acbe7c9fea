import { z } from "zod";
import { IdentityKeyId } from "../../ids.ts";

/** How user tokens are signed that a key verifies. */
export const IdentityAlgorithm = z.enum(["HS256", "ES256", "EdDSA", "RS256"]).meta({ id: "IdentityAlgorithm" });
export type IdentityAlgorithm = z.infer<typeof IdentityAlgorithm>;

/** What verifies a project's user tokens: an identity secret, which is never shown again, or a public key. */
export const IdentityKey = z
  .object({
    id: IdentityKeyId.meta({ description: "What a user token may name as `kid`" }),
    algorithm: IdentityAlgorithm.meta({ description: "HS256: a secret that Herald made; else a public key of yours" }),
    created_at: z.iso.datetime(),
  })
  .meta({ id: "IdentityKey" });
export type IdentityKey = z.infer<typeof IdentityKey>;

/** A project has at most so many at a time: two secrets are enough to replace one, and four public keys for two backends. */
export const identityKeyLimits = { secrets: 2, publicKeys: 4 } as const;

/** Body of `POST …/identity-keys`: `{}` makes a secret. Whether a public key parses is checked by registry. */
export const CreateIdentityKey = z
  .strictObject({
    public_key: z
      .union([z.string().min(1).max(8_192), z.record(z.string(), z.unknown())], {
        error: "must be a public key: a PEM text that begins with -----BEGIN PUBLIC KEY-----, or a JWK",
      })
      .optional(),
  })
  .meta({ id: "CreateIdentityKey" });
export type CreateIdentityKey = z.infer<typeof CreateIdentityKey>;

/** What a new project protects: what backends usually target people by. */
export const defaultProtectedMetadata: readonly string[] = ["user_id", "user_email", "email", "phone"];

/** The paths of `metadata` and `identifiers` that only the project's token writes. */
export const ProtectedMetadata = z
  .array(
    z
      .string()
      .min(1, "may not be empty")
      .max(256, "must be at most 256 characters")
      .refine((path) => path.split(".").every((key) => key.replaceAll("_", "") !== ""), "must be keys joined by `.`"),
  )
  .max(64, "at most 64 paths are accepted")
  .meta({
    description:
      "Paths of `metadata` and `identifiers`, such as `user_id` or `billing.plan`, that clients may not write. A path covers what is below it, in upper and lower case and with or without `_`",
  });
