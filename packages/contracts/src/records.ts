import { z } from "zod";
import { Scope } from "./http/v1/admin.ts";
import { maxGroupSize, NotificationId, ProjectId, TokenId } from "./ids.ts";
import { Provider } from "./platforms.ts";
import { VapidKeyStatus } from "./vapid.ts";

/** `push_tokens`, by the token's hash: what the gateway must know to authenticate without asking anyone. */
export const TokenRecord = z.object({
  id: TokenId,
  projectId: ProjectId,
  scopes: z.array(Scope),
  expiresAt: z.iso.datetime().optional(),
});
export type TokenRecord = z.infer<typeof TokenRecord>;

/** `push_projects`, `<project>.settings`: written by registry. */
export const ProjectRecord = z.object({
  id: ProjectId,
  openRegistration: z.boolean(),
  /** Absent: none, as for a project from before there were any. */
  protectedMetadata: z.array(z.string()).optional(),
});
export type ProjectRecord = z.infer<typeof ProjectRecord>;

/** `push_projects`, `<project>.providers`: written by dispatch. */
export const ProvidersRecord = z.object({
  providers: z.array(Provider),
  /** What browsers may subscribe with. Absent where the project has no Web Push, and in records from before there were several. */
  vapidKeys: z.array(z.object({ id: z.string(), publicKey: z.string(), status: VapidKeyStatus })).optional(),
});
export type ProvidersRecord = z.infer<typeof ProvidersRecord>;

/**
 * `push_idempotency`: written before the request is carried out, completed with its answer. There are as many as keyed requests in a
 * day, so it is kept short: hashes are 128 bits, which no two requests share by chance.
 */
export const IdempotencyRecord = z.object({
  body: z.string().meta({ description: "Hash of the body" }),
  /** The id that the request gives out, so that a repeat gives out the same. */
  id: z.string(),
  /** In ms since 1970. */
  at: z.number().int(),
  /** When it was taken up again, after a crash or a failure; in ms. */
  triedAt: z.number().int().optional(),
  /** Of a request that sends several notifications: which of them were accepted, and under which ids. */
  batch: z
    .object({
      /** The first id and the number of those that were accepted in one group, whose ids are `notificationIdsFrom` of the two. */
      groups: z.array(z.tuple([NotificationId, z.number().int().min(1).max(maxGroupSize)])),
      /** A bit for each notification of the request, lowest first, in base64url; absent: all were accepted. */
      accepted: z.string().optional(),
    })
    .optional(),
  /** It failed, and whoever repeats it need not wait. */
  released: z.boolean().optional(),
  answer: z
    .object({
      status: z.number().int(),
      /** Absent where it is made again from the request. */
      body: z.unknown().optional().meta({ description: "Without any secret that was shown" }),
    })
    .optional(),
});
export type IdempotencyRecord = z.infer<typeof IdempotencyRecord>;

/** `push_replays`: that a dead letter was published again. */
export const ReplayRecord = z.object({
  /** When the dead letter was stored: a stream that was made anew gives its sequences again. */
  storedAt: z.iso.datetime(),
  times: z.number().int().min(1),
  replayedAt: z.iso.datetime(),
  /** The last replay, so that one which is repeated after a crash counts once. */
  attempt: z.string(),
});
export type ReplayRecord = z.infer<typeof ReplayRecord>;

export const tokenKey = (hash: string): string => hash;
export const projectSettingsKey = (id: ProjectId): string => `${id}.settings`;
export const projectProvidersKey = (id: ProjectId): string => `${id}.providers`;
