import { z } from "zod";
import { providerProblems } from "../../errors.ts";
import { named, namedBody } from "../../named.ts";
import { Provider } from "../../platforms.ts";
import { VapidKeyId, VapidKeyStatus, VapidPublicKey, VapidSubject } from "../../vapid.ts";

const Pem = z
  .string()
  .min(1)
  .max(32_768)
  .meta({ examples: ["-----BEGIN PRIVATE KEY-----\n…\n-----END PRIVATE KEY-----\n"] });
/** A server that replaces the provider's own host, and the CA to trust for it: only if the operator allows it. */
const elsewhere = {
  endpoint: z
    .url({ protocol: /^https$/, error: "must be an https URL" })
    .max(2_048, "must be at most 2048 characters")
    .optional(),
  ca: Pem.optional(),
};
const BundleId = z
  .string()
  .regex(/^[A-Za-z0-9.-]{1,255}$/, "must be a bundle id such as com.example.app")
  .meta({ examples: ["com.example.app"] });
/** Apps of one team beside `bundle_id`. */
const maxFurtherApps = 20;
const apns = {
  private_key: Pem,
  bundle_id: BundleId,
  environment: z.enum(["production", "sandbox"]),
  ...elsewhere,
};

/** Settings of `PUT …/providers/apns`: a .p8 key, or a certificate with its key. Dispatch checks that they parse. */
export const ApnsSettings = z
  .union(
    [
      z.strictObject({
        key_id: z
          .string()
          .regex(/^[A-Z0-9]{10}$/, "must be the key's 10 characters, of A to Z and 0 to 9")
          .meta({ examples: ["ABC123DEFG"] }),
        team_id: z
          .string()
          .regex(/^[A-Z0-9]{10}$/, "must be the team's 10 characters, of A to Z and 0 to 9")
          .meta({ examples: ["TEAM123456"] }),
        ...apns,
        bundle_ids: z
          .array(BundleId)
          .max(maxFurtherApps, `at most ${maxFurtherApps} are accepted`)
          .optional()
          .meta({
            description:
              "Further apps of the team that the project sends to. A device names its `app`; without one it belongs to `bundle_id`",
            examples: [["com.example.driver"]],
          }),
      }),
      z.strictObject({
        certificate: Pem,
        ...apns,
      }),
    ],
    {
      error:
        "must be { key_id, team_id, private_key, bundle_id, bundle_ids?, environment } or { certificate, private_key, bundle_id, environment }",
    },
  )
  .meta({ id: "ApnsSettings" });
export type ApnsSettings = z.infer<typeof ApnsSettings>;

/** Firebase's JSON has about 2,400 bytes. */
const maxAccountBytes = 16_384;

export const FcmSettings = namedBody("FcmSettings", {
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
});
export type FcmSettings = z.infer<typeof FcmSettings>;

/** Every declarative push contains the origin. */
const maxSiteLength = 255;

export const WebPushSettings = namedBody("WebPushSettings", {
  subject: VapidSubject,
  public_key: z.string().max(200).optional(),
  private_key: z.string().max(200).optional(),
  site: z
    .string()
    .max(maxSiteLength, `must be at most ${maxSiteLength} characters`)
    .refine(
      (site) => site.startsWith("https://") && URL.parse(site)?.origin === site,
      "must be an origin such as https://shop.example.com: https and a host, without a path",
    )
    .optional()
    .meta({
      description:
        "The origin of the web app. With it, Safari shows notifications that have a title by itself (Declarative Web Push), and a click opens `link_to` there",
      examples: ["https://shop.example.com"],
    }),
  ...elsewhere,
});
export type WebPushSettings = z.infer<typeof WebPushSettings>;

/** A Web Push key of a project; the private half is never shown. */
export const VapidKey = named("VapidKey", {
  id: VapidKeyId,
  public_key: VapidPublicKey,
  status: VapidKeyStatus,
  created_at: z.iso.datetime(),
  current_since: z.iso.datetime().optional().meta({ description: "When browsers were last given it" }),
  devices: z.number().int().min(0).meta({ description: "Active subscriptions that were made with it" }),
});
export type VapidKey = z.infer<typeof VapidKey>;

/** A key pair created outside Herald. Dispatch checks that it parses. */
export const VapidKeyPair = namedBody("VapidKeyPair", {
  public_key: z.string().max(200).optional(),
  private_key: z.string().max(200),
});

/** Body of `POST …/providers/webpush/keys`: without a pair, Herald creates one. */
export const CreateVapidKey = namedBody("CreateVapidKey", { key: VapidKeyPair.optional() });

/** Body of `PATCH …/providers/webpush/keys/{key}`. */
export const ChangeVapidKey = namedBody("ChangeVapidKey", {
  key: z.strictObject({ status: z.literal("current", 'must be "current": a key becomes `earlier` by another one') }),
});

/** The devices lost by retiring a key. */
export const RetiredVapidKey = named("RetiredVapidKey", {
  id: VapidKeyId,
  lost_devices: z.number().int().min(0).meta({
    description: "Active subscriptions that were made with it: they get nothing until they subscribe again",
  }),
});

const PublishedKey = z.object({ id: VapidKeyId, public_key: VapidPublicKey });

/** The key with which a browser subscribes. */
export const WebPushKey = PublishedKey.extend({
  next: PublishedKey.optional().meta({
    description: "What will take its place; subscriptions made with it are served already",
  }),
}).meta({ id: "WebPushKey" });

export const providerSettings = { apns: ApnsSettings, fcm: FcmSettings, webpush: WebPushSettings } as const;

/** A problem that currently prevents pushes, although the provider is not paused. */
export const ProviderProblem = named("ProviderProblem", {
  reason: z.string().meta({ description: `One of ${Object.keys(providerProblems).join(", ")}; more may come` }),
  host: z.string().optional().meta({ description: "The server that was not reached" }),
  detail: z.string().meta({ description: "What happened, and what to check" }),
  since: z.iso.datetime(),
});

/** The visible part of a provider's settings: never a secret. */
export const ProviderView = named("ProviderView", {
  provider: Provider,
  settings: z
    .record(z.string(), z.unknown())
    .meta({ description: "Key id, team, bundle, expiry, public key: never a secret" }),
  fingerprint: z
    .string()
    .optional()
    .meta({
      description:
        "SHA-256 of the settings as they were last put, as JSON with sorted keys: it changes with every field, secrets too",
      examples: ["e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"],
    }),
  status: z.enum(["active", "paused"]),
  paused_reason: z.string().optional().meta({
    description: "The provider's code, and its own words if it gave any",
  }),
  paused_detail: z.string().optional().meta({ description: "What to check" }),
  next_trial_at: z.iso.datetime().optional().meta({
    description:
      "When Herald tries one of the waiting pushes, and resumes the provider if it accepts. Absent: new settings alone resume it",
  }),
  problems: z.array(ProviderProblem).optional().meta({
    description: "Absent when there is none. Pushes wait and are tried again; new settings send them at once",
  }),
  updated_at: z.iso.datetime(),
});
export type ProviderView = z.infer<typeof ProviderView>;
