import { z } from "zod";
import { providerProblems } from "../../errors.ts";
import { Provider } from "../../platforms.ts";
import { VapidKeyId, VapidKeyStatus, VapidPublicKey } from "../../vapid.ts";

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
