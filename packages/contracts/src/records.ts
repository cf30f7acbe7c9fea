import { hash } from "node:crypto";
import { z } from "zod";
import { installation } from "./events.ts";
import { Scope } from "./http/v1/admin.ts";
import { ApprovalRule } from "./http/v1/approval.ts";
import { DeclaredKind } from "./http/v1/kinds.ts";
import { OwnLimits } from "./http/v1/limits.ts";
import { OperatorRole, ProjectGrant } from "./http/v1/operators.ts";
import { StoredPause } from "./http/v1/pause.ts";
import { QuietHours } from "./http/v1/quiet-hours.ts";
import { ReceiptShare } from "./http/v1/receipt-fields.ts";
import { OperatorReference } from "./http/v1/sessions.ts";
import { TemplateContent } from "./http/v1/templates.ts";
import { maxGroupSize, NotificationId, OperatorId, ProjectId, TokenId } from "./ids.ts";
import { Provider } from "./platforms.ts";
import { TemplateName } from "./template-version.ts";
import { VapidKeyStatus } from "./vapid.ts";

/** `push_tokens`, by the token's hash: the gateway's data to authenticate without a request. */
export const TokenRecord = z.object({
  id: TokenId,
  projectId: ProjectId,
  scopes: z.array(Scope),
  expiresAt: z.iso.datetime().optional(),
  /** The operator who created it; absent: created before Herald stored this. */
  createdBy: OperatorReference.optional(),
});
export type TokenRecord = z.infer<typeof TokenRecord>;

/** `push_operators`, by the hash of a token or of an identity: the gateway's data to authenticate an operator without a request. */
export const OperatorRecord = z.object({
  id: OperatorId,
  name: z.string(),
  role: OperatorRole,
  projects: z.array(ProjectGrant),
  /** Groups of the groups file that an identity provider named at the last sign-in. */
  groups: z.array(z.string()).optional(),
  /** Sessions and codes with another value have ended. Absent: the operator was never signed out. */
  signedOutAt: z.iso.datetime().optional(),
});
export type OperatorRecord = z.infer<typeof OperatorRecord>;

/** `push_sessions`, `session.<hash>` and `code.<hash>`: a session or a sign-in code, by the SHA-256 of its secret. */
export const SessionRecord = z.object({
  /** SHA-256 of the operator's token: replacing the token ends its sessions and codes. */
  operatorTokenHash: z.string(),
  /** The operator's `signedOutAt` at its start: comparing it needs no two clocks that agree. */
  signedOutAt: z.iso.datetime().optional(),
  expiresAt: z.iso.datetime(),
  /** Of a code: its session ends no later than the one that created it. */
  sessionEndsAt: z.iso.datetime().optional(),
  /** Sent as `Authorization: Bearer`, not as a cookie. */
  bearer: z.literal(true).optional(),
  /** Ends the session at the identity provider that began it. */
  logoutUrl: z.string().optional(),
  /** The time when a code was exchanged. */
  usedAt: z.iso.datetime().optional(),
});
export type SessionRecord = z.infer<typeof SessionRecord>;

/** `push_projects`, `<project>.settings`: written by registry. */
export const ProjectRecord = z.object({
  id: ProjectId,
  openRegistration: z.boolean(),
  /** Absent: none, as in projects of earlier versions. */
  protectedMetadata: z.array(z.string()).optional(),
  /** Absent: all have their defaults. */
  limits: OwnLimits.optional(),
  /** `receipts` of notifications that have none; absent: false. */
  receipts: ReceiptShare.optional(),
  /** Absent: UTC. */
  defaultTimeZone: z.string().optional(),
  /** Absent: no send needs approval. */
  approval: ApprovalRule.optional(),
});
export type ProjectRecord = z.infer<typeof ProjectRecord>;

/** `push_providers`, `<project>`: written by dispatch. */
export const ProvidersRecord = z.object({
  providers: z.array(Provider),
  /** Keys that browsers may subscribe with. Absent without Web Push, and in records of earlier versions. */
  vapidKeys: z.array(z.object({ id: z.string(), publicKey: z.string(), status: VapidKeyStatus })).optional(),
  /** APNs is set up with a certificate, which some push types do not accept. */
  apnsCertificate: z.literal(true).optional(),
  /** The origin of the web app, if the Web Push settings name it. */
  site: z.string().optional(),
  /** The origin of the project's own push service, if the Web Push settings name one: no rule about public hosts applies to it. */
  pushOrigin: z.string().optional(),
});
export type ProvidersRecord = z.infer<typeof ProvidersRecord>;

/**
 * `push_projects`, `<project>.rules`: which devices get a notification now. Written by registry; absent: every device does. The record of
 * all projects (`installation`) has at most a pause; after a loss registry writes it last, so where it is, all others are.
 */
export const RulesRecord = z.object({
  projectId: z.union([ProjectId, z.literal(installation)]),
  kinds: z.array(DeclaredKind),
  quietHours: QuietHours.optional(),
  /** Of devices without one; absent: UTC. */
  timeZone: z.string().optional(),
  /** Users of the project have quiet hours of their own. */
  ownHours: z.literal(true).optional(),
  /** Nothing is sent; absent: it is. */
  paused: StoredPause.optional(),
});
export type RulesRecord = z.infer<typeof RulesRecord>;

/** `push_content`, `<project>.<name>`: the published version of a template, written by registry. */
export const TemplateRecord = z.object({
  projectId: ProjectId,
  name: TemplateName,
  version: z.number().int().min(1),
  content: TemplateContent,
});
export type TemplateRecord = z.infer<typeof TemplateRecord>;

/**
 * `push_idempotency`: written before the request is processed, and completed with its answer, unless it is a send. A day has many records,
 * so they are short: hashes have 128 bits, enough against chance collisions.
 */
export const IdempotencyRecord = z.object({
  body: z.string().meta({ description: "Hash of the body" }),
  /** The id that the request creates, so that a repeat answers the same id. */
  id: z.string(),
  /** In ms since 1970. */
  at: z.number().int(),
  /** When a repeat took over after a crash or a failure, in ms. */
  triedAt: z.number().int().optional(),
  /** Of a batch: the accepted notifications and their ids. */
  batch: z
    .object({
      /** For each group: its first id and the number of its notifications, for `notificationIdsFrom`. */
      groups: z.array(z.tuple([NotificationId, z.number().int().min(1).max(maxGroupSize)])),
      /** A bit for each notification of the request, lowest first, in base64url; absent: all were accepted. */
      accepted: z.string().optional(),
    })
    .optional(),
  /** The attempt failed, so a repeat need not wait. */
  released: z.boolean().optional(),
  /** Absent: of a send, because dispatch knows its notifications, or of a request that is not completed. */
  answer: z
    .object({
      status: z.number().int(),
      body: z.unknown().meta({ description: "Without any secret that was shown" }),
    })
    .optional(),
});
export type IdempotencyRecord = z.infer<typeof IdempotencyRecord>;

/** `push_replays`: the replays of a dead letter. */
export const ReplayRecord = z.object({
  /** When the dead letter was stored. Distinguishes it, because a recreated stream reuses sequences. */
  storedAt: z.iso.datetime(),
  times: z.number().int().min(1),
  replayedAt: z.iso.datetime(),
  /** The id of the last replay, so that a replay repeated after a crash counts once. */
  attempt: z.string(),
});
export type ReplayRecord = z.infer<typeof ReplayRecord>;

/** SHA-256 of a secret as 64 hex digits: Herald stores only this hash of the secret. */
export const secretHash = (text: string): string => hash("sha256", text, "hex");

export const tokenKey = (hash: string): string => hash;
export const sessionKey = (hash: string): string => `session.${hash}`;
export const signInCodeKey = (hash: string): string => `code.${hash}`;
export const projectSettingsKey = (id: ProjectId): string => `${id}.settings`;
export const projectProvidersKey = (id: ProjectId): string => id;
export const projectRulesKey = (id: ProjectId | typeof installation): string => `${id}.rules`;
export const templateKey = (id: ProjectId, name: string): string => `${id}.${name}`;
