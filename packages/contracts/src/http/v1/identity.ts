import { z } from "zod";
import { IdentityKeyId } from "../../ids.ts";
import { named, namedBody } from "../../named.ts";

/** The signature algorithm of the user tokens that a key verifies. */
export const IdentityAlgorithm = z.enum(["HS256", "ES256", "EdDSA", "RS256"]).meta({ id: "IdentityAlgorithm" });
export type IdentityAlgorithm = z.infer<typeof IdentityAlgorithm>;

/** A key that verifies a project's user tokens: an identity secret, which is never shown again, or a public key. */
export const IdentityKey = named("IdentityKey", {
  id: IdentityKeyId.meta({ description: "What a user token may name as `kid`" }),
  algorithm: IdentityAlgorithm.meta({ description: "HS256: a secret that Herald made; else a public key of yours" }),
  created_at: z.iso.datetime(),
});
export type IdentityKey = z.infer<typeof IdentityKey>;

/** The maximum per project: two secrets are enough to replace one, and four public keys for two backends. */
export const identityKeyLimits = { secrets: 2, publicKeys: 4 } as const;

/** Body of `POST …/identity-keys`: `{}` creates a secret. Registry checks that a public key parses. */
export const CreateIdentityKey = namedBody("CreateIdentityKey", {
  public_key: z
    .union([z.string().min(1).max(8_192), z.record(z.string(), z.unknown())], {
      error: "must be a public key: a PEM text that begins with -----BEGIN PUBLIC KEY-----, or a JWK",
    })
    .optional(),
});

/** Protected in new projects: the fields by which backends usually target people. */
export const defaultProtectedMetadata: readonly string[] = ["user_id", "user_email", "email", "phone"];

/** The paths of `metadata` and `identifiers` that only the project's token can write. */
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
