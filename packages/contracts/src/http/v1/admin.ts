import { z } from "zod";
import { durationMs } from "../../duration.ts";
import { providerProblems } from "../../errors.ts";
import { NotificationId, ProjectId, TokenId } from "../../ids.ts";
import { Provider } from "../../platforms.ts";
import { type DurableName, durables } from "../../streams.ts";
import { VapidKeyId, VapidKeyStatus, VapidPublicKey } from "../../vapid.ts";
import { ProtectedMetadata } from "./identity.ts";

/** A name that people see. */
export const Name = z
  .string()
  .min(1, "may not be empty")
  .max(100, "must be at most 100 characters")
  .refine((name) => !/\p{Cc}/u.test(name), "may not contain control characters")
  .meta({ examples: ["Shop"] });

const dayMs = 86_400_000;
/** The time that a device was last seen is stored once a day. */
const minStaleDays = 7;
const maxStaleDays = 3_650;

const StaleAfter = z.string().refine((text) => {
  const ms = durationMs(text) ?? 0;
  return /[dw]$/.test(text) && ms >= minStaleDays * dayMs && ms <= maxStaleDays * dayMs;
}, `must be ${minStaleDays}d to ${maxStaleDays}d, in days or weeks such as \`90d\` or \`26w\``);
const staleAfterMeta = {
  description:
    "Devices that were not seen for so long become inactive, with the reason `stale`; the next registration activates them. Absent: never",
  examples: ["90d"],
};

export const Project = z
  .object({
    id: ProjectId,
    name: z.string().meta({ examples: ["Shop"] }),
    open_registration: z.boolean(),
    protected_metadata: z.array(z.string()).default([]).meta({ description: "Paths that clients may not write" }),
    stale_after: z.string().optional().meta(staleAfterMeta),
    warnings: z.array(z.string()).optional().meta({ description: "What an operator should look at" }),
    created_at: z.iso.datetime(),
  })
  .meta({ id: "Project" });
export type Project = z.infer<typeof Project>;

/** Body of `POST /admin/v1/projects`. */
export const CreateProject = z
  .strictObject({
    project: z.strictObject({
      name: Name,
      open_registration: z.boolean().optional(),
      protected_metadata: ProtectedMetadata.optional(),
    }),
  })
  .meta({ id: "CreateProject" });
export type CreateProject = z.infer<typeof CreateProject>;

/** Body of `PATCH /admin/v1/projects/{id}`. */
export const ChangeProject = z
  .strictObject({
    project: z
      .strictObject({
        name: Name.optional(),
        open_registration: z.boolean().optional(),
        protected_metadata: ProtectedMetadata.optional(),
        stale_after: StaleAfter.nullable()
          .optional()
          .meta({
            ...staleAfterMeta,
            description: `${staleAfterMeta.description.replace("Absent: never", "`null`: never")}`,
          }),
      })
      .refine((project) => Object.keys(project).length > 0, "at least one field is required")
      .meta({ minProperties: 1, examples: [{ open_registration: false }] }),
  })
  .meta({ id: "ChangeProject" });
export type ChangeProject = z.infer<typeof ChangeProject>;

export const Scope = z.enum(["send", "read", "devices", "export"]).meta({ id: "Scope" });
export type Scope = z.infer<typeof Scope>;
/** Of a token that names none. `export` must be named: it gives out everything at once. */
export const defaultScopes: readonly Scope[] = ["send", "read", "devices"];

/** A project token as it is listed: the secret itself is shown once, when it is made. */
export const ProjectToken = z
  .object({
    id: TokenId,
    name: z.string().meta({ examples: ["Backend"] }),
    scopes: z.array(Scope),
    expires_at: z.iso.datetime().optional(),
    created_at: z.iso.datetime(),
  })
  .meta({ id: "ProjectToken" });
export type ProjectToken = z.infer<typeof ProjectToken>;

/** Body of `POST /admin/v1/projects/{id}/tokens`. */
export const CreateToken = z
  .strictObject({
    token: z.strictObject({
      name: Name,
      scopes: z
        .array(Scope)
        .min(1, "at least one scope is required")
        .max(Scope.options.length, `must be at most ${Scope.options.length} scopes, each once`)
        .optional(),
      expires_at: z.iso.datetime({ offset: true, error: "must be an RFC 3339 time with offset" }).optional(),
    }),
  })
  .meta({ id: "CreateToken" });
export type CreateToken = z.infer<typeof CreateToken>;

const Pem = z
  .string()
  .min(1)
  .max(32_768)
  .meta({ examples: ["-----BEGIN PRIVATE KEY-----\n…\n-----END PRIVATE KEY-----\n"] });
/** Where to send instead of the provider's own host, and whom to trust there: only where the operator allows it. */
const elsewhere = {
  endpoint: z
    .url({ protocol: /^https$/, error: "must be an https URL" })
    .max(2_048, "must be at most 2048 characters")
    .optional(),
  ca: Pem.optional(),
};
const ApnsEnvironmentSetting = z.enum(["production", "sandbox"]);
const BundleId = z
  .string()
  .regex(/^[A-Za-z0-9.-]{1,255}$/, "must be a bundle id such as com.example.app")
  .meta({ examples: ["com.example.app"] });

/** Settings of `PUT …/providers/apns`: a .p8 key, or a certificate with its key. Whether they parse is checked by dispatch. */
export const ApnsSettings = z
  .union(
    [
      z.strictObject({
        key_id: z
          .string()
          .regex(/^[A-Za-z0-9]{10}$/, "must be the key's 10 characters")
          .meta({ examples: ["ABC123DEFG"] }),
        team_id: z
          .string()
          .regex(/^[A-Za-z0-9]{10}$/, "must be the team's 10 characters")
          .meta({ examples: ["TEAM123456"] }),
        private_key: Pem,
        bundle_id: BundleId,
        environment: ApnsEnvironmentSetting,
        ...elsewhere,
      }),
      z.strictObject({
        certificate: Pem,
        private_key: Pem,
        bundle_id: BundleId,
        environment: ApnsEnvironmentSetting,
        ...elsewhere,
      }),
    ],
    {
      error:
        "must be { key_id, team_id, private_key, bundle_id, environment } or { certificate, private_key, bundle_id, environment }",
    },
  )
  .meta({ id: "ApnsSettings" });
export type ApnsSettings = z.infer<typeof ApnsSettings>;

/** Firebase's is some 2,400 bytes. */
const maxAccountBytes = 16_384;

export const FcmSettings = z
  .strictObject({
    service_account: z
      .record(z.string(), z.unknown(), { error: "must be the JSON that Firebase gives" })
      .refine(
        (account) => Buffer.byteLength(JSON.stringify(account)) <= maxAccountBytes,
        `must be at most ${maxAccountBytes} bytes of JSON`,
      )
      .meta({
        description: "The service account's JSON as Firebase gives it",
        examples: [
          {
            type: "service_account",
            project_id: "shop-1234",
            private_key: "-----BEGIN PRIVATE KEY-----\n…",
            client_email: "herald@shop-1234.iam.gserviceaccount.com",
          },
        ],
      }),
    ...elsewhere,
  })
  .meta({ id: "FcmSettings" });
export type FcmSettings = z.infer<typeof FcmSettings>;

export const WebPushSettings = z
  .strictObject({
    subject: z
      .string()
      // It travels in a header of every push.
      .max(320, "must be at most 320 characters")
      .regex(/^(mailto:.+@.+|https:\/\/.+)$/, "must be a mailto: or https: URL of whom to contact")
      .meta({ examples: ["mailto:push@example.com"] }),
    public_key: z.string().max(200).optional(),
    private_key: z.string().max(200).optional(),
    ...elsewhere,
  })
  .meta({ id: "WebPushSettings" });
export type WebPushSettings = z.infer<typeof WebPushSettings>;

/** A Web Push key of a project; the private half is never shown. */
export const VapidKey = z
  .object({
    id: VapidKeyId,
    public_key: VapidPublicKey,
    status: VapidKeyStatus,
    created_at: z.iso.datetime(),
    current_since: z.iso.datetime().optional().meta({ description: "When browsers were last given it" }),
    devices: z.number().int().min(0).meta({ description: "Active subscriptions that were made with it" }),
  })
  .meta({ id: "VapidKey" });
export type VapidKey = z.infer<typeof VapidKey>;

/** A pair that was made elsewhere. Whether it parses is checked by dispatch. */
export const VapidKeyPair = z
  .strictObject({ public_key: z.string().max(200).optional(), private_key: z.string().max(200) })
  .meta({ id: "VapidKeyPair" });
export type VapidKeyPair = z.infer<typeof VapidKeyPair>;

/** Body of `POST …/providers/webpush/keys`: without a pair, one is made. */
export const CreateVapidKey = z.strictObject({ key: VapidKeyPair.optional() }).meta({ id: "CreateVapidKey" });
export type CreateVapidKey = z.infer<typeof CreateVapidKey>;

/** Body of `PATCH …/providers/webpush/keys/{key}`. */
export const ChangeVapidKey = z
  .strictObject({
    key: z.strictObject({ status: z.literal("current", 'must be "current": a key becomes `earlier` by another one') }),
  })
  .meta({ id: "ChangeVapidKey" });
export type ChangeVapidKey = z.infer<typeof ChangeVapidKey>;

/** What a retirement cost. */
export const RetiredVapidKey = z
  .object({
    id: VapidKeyId,
    lost_devices: z.number().int().min(0).meta({
      description: "Active subscriptions that were made with it: they get nothing until they subscribe again",
    }),
  })
  .meta({ id: "RetiredVapidKey" });
export type RetiredVapidKey = z.infer<typeof RetiredVapidKey>;

const PublishedKey = z.object({ id: VapidKeyId, public_key: VapidPublicKey });

/** What a browser subscribes with. */
export const WebPushKey = PublishedKey.extend({
  next: PublishedKey.optional().meta({
    description: "What will take its place; subscriptions made with it are served already",
  }),
}).meta({ id: "WebPushKey" });
export type WebPushKey = z.infer<typeof WebPushKey>;

export const providerSettings = { apns: ApnsSettings, fcm: FcmSettings, webpush: WebPushSettings } as const;

/** What keeps pushes from being sent now, although the provider is not paused. */
export const ProviderProblem = z
  .object({
    reason: z.string().meta({ description: `One of ${Object.keys(providerProblems).join(", ")}; more may come` }),
    host: z.string().optional().meta({ description: "The server that was not reached" }),
    detail: z.string().meta({ description: "What happened, and what to check" }),
    since: z.iso.datetime(),
  })
  .meta({ id: "ProviderProblem" });
export type ProviderProblem = z.infer<typeof ProviderProblem>;

/** What is shown of a provider's settings: never a secret. */
export const ProviderView = z
  .object({
    provider: Provider,
    settings: z
      .record(z.string(), z.unknown())
      .meta({ description: "Key id, team, bundle, expiry, public key: never a secret" }),
    status: z.enum(["active", "paused"]),
    paused_reason: z.string().optional(),
    problems: z.array(ProviderProblem).optional().meta({
      description: "Absent when there is none. Pushes wait and are tried again; new settings send them at once",
    }),
    updated_at: z.iso.datetime(),
  })
  .meta({ id: "ProviderView" });
export type ProviderView = z.infer<typeof ProviderView>;

/** The stream's sequence. JavaScript's whole numbers end at 16 digits, which no stream reaches. */
export const DeadLetterId = z
  .string()
  .regex(/^[1-9][0-9]{0,14}$/, "must be a dead letter's id, such as 17")
  .meta({ id: "DeadLetterId", description: "The dead letter's sequence in its stream", examples: ["17"] });

/** A message that could not be processed. Its content is not shown: it may hold push tokens and what was to be sent. */
export const DeadLetter = z
  .object({
    id: DeadLetterId,
    durable: z.string().meta({ description: "Whose handler gave it up" }),
    message: z.string().optional().meta({ description: "Which contract it is of, such as SendV1" }),
    project_id: ProjectId.optional(),
    notification_id: NotificationId.optional(),
    subject: z.string().meta({ description: "Where the message was, and where a replay goes" }),
    reason: z.string(),
    detail: z.string(),
    deliveries: z.number().int().min(0),
    died_at: z.iso.datetime(),
    replayed_at: z.iso.datetime().optional().meta({ description: "The last time" }),
    replays: z.number().int().min(1).optional().meta({ description: "How often it was replayed; absent: never" }),
    /** The dead letter whose replay died again as this one. */
    replay_of: DeadLetterId.optional(),
  })
  .meta({ id: "DeadLetter" });
export type DeadLetter = z.infer<typeof DeadLetter>;

/** One of the durables: the query of `GET /admin/v1/dead-letters`. */
export const Durable = z.enum(Object.keys(durables) as [DurableName, ...DurableName[]]).meta({ id: "Durable" });

/** More at a time would outlast the patience of an HTTP client. */
const maxReplays = 100;

/** Body of `POST /admin/v1/dead-letters/replay`: which ones, or the next of a durable that were never replayed. */
export const ReplayDeadLetters = z
  .union(
    [
      z.strictObject({
        dead_letters: z
          .array(DeadLetterId)
          .min(1, "at least one id is required")
          .max(maxReplays, `must be at most ${maxReplays} ids`),
      }),
      z.strictObject({ durable: Durable, after: z.string().max(200).optional() }),
    ],
    { error: "must be { dead_letters: [id, …] } or { durable, after? }" },
  )
  .meta({ id: "ReplayDeadLetters" });
export type ReplayDeadLetters = z.infer<typeof ReplayDeadLetters>;

/** The result of replaying one dead letter. */
export const Replay = z
  .object({
    id: DeadLetterId,
    status: z.enum(["replayed", "refused", "not-found", "failed"]).meta({
      description:
        "`replayed`: published again, which does not say that it is processed; `refused`: it would change nothing, or may not be published; `failed`: something is unavailable, try again",
    }),
    detail: z.string().meta({ description: "The same in words" }),
    replays: z.number().int().min(1).optional().meta({ description: "How often it was replayed, with this time" }),
    replayed_at: z.iso.datetime().optional(),
  })
  .meta({ id: "Replay" });
export type Replay = z.infer<typeof Replay>;
