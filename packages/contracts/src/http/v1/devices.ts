import { z } from "zod";
import { AppData } from "../../app-data.ts";
import { CapabilityList } from "../../capabilities.ts";
import { DeviceId, ProjectId } from "../../ids.ts";
import { changedFields, named, namedBody, type PathProblem, withProblems } from "../../named.ts";
import {
  ApnsEnvironment,
  AppId,
  FcmTokenKind,
  Platform,
  Provider,
  providersOf,
  servingProvider,
  WebPushKeys,
} from "../../platforms.ts";
import { PushName, TokenType } from "../../push-types.ts";
import { UserId, UserToken } from "../../users.ts";
import { VapidKeyId, VapidPublicKey } from "../../vapid.ts";
import { NewTarget } from "./notification-limits.ts";
import { listQuery } from "./pagination.ts";
import { TopicName } from "./topics.ts";

const tokenExample = "740f4707bebcf74f9b7c25d48e3358945f6aa01da5ddb387462c7eaf61bb78ad";

/** A push token from its platform: APNs device token, FCM token or Installation ID, or a Web Push endpoint. */
export const PushToken = z
  .string()
  .min(1, "may not be empty")
  .max(2048, "must be at most 2048 characters")
  .refine((token) => !/[\p{Cc}\s]/u.test(token), "may not contain spaces or control characters")
  .meta({ id: "PushToken", examples: [tokenExample] });

export const InstallationId = z
  .string()
  .regex(/^[\x21-\x7e]{1,128}$/, "must be 1 to 128 visible ASCII characters")
  .meta({
    id: "InstallationId",
    description:
      "The app's own id of its installation, such as the Firebase Installation ID. Of two devices of the same platform, user and installation, one push goes out: through the platform's own provider. Counts for devices with a user, and for devices whose id the project's backend sent. At most 8 active devices of a platform and user may have it",
    examples: ["cHkUvHDRT0mVg6gvEbWFaR"],
  });

/** The provider that serves a device; part of its key. */
const DeviceProvider = Provider.meta({
  description:
    "Which provider gave the push token. Default: the platform's own (`apns` for ios, `fcm` for android, `webpush` for web). `fcm` serves every platform",
});

/** The app of a device, for projects with several. */
const DeviceApp = AppId.meta({
  description:
    "The app that gave the push token: its bundle id or package. Absent: the `bundle_id` of the APNs settings; other providers need none. On ios, pushes to an app that is neither `bundle_id` nor in `bundle_ids` fail with `app-not-configured`",
  examples: ["com.example.driver"],
});

/** A push token of one of Apple's push types, beside the device token. */
export const FurtherToken = named("FurtherToken", {
  type: TokenType,
  name: PushName.optional().meta({
    description: "Of controls: their kind; of `liveactivity`: the type of the attributes; of `activity`: its id",
  }),
  token: z.string().meta({ description: "Shown whole where the device's `token` is", examples: [tokenExample] }),
  environment: ApnsEnvironment.optional().meta({ description: "Absent: the device's" }),
  registered_at: z.iso.datetime().meta({ description: "When the app last sent it" }),
});
export type FurtherToken = z.infer<typeof FurtherToken>;

export const DeviceStatus = z.enum(["active", "inactive"]).meta({ id: "DeviceStatus" });
export type DeviceStatus = z.infer<typeof DeviceStatus>;

export const InactiveReason = z.enum(["unregistered", "requested", "stale"]).meta({ id: "InactiveReason" });
export type InactiveReason = z.infer<typeof InactiveReason>;

/** A device in the API. `topics` are names. */
export const Device = named(
  "Device",
  {
    id: DeviceId,
    token: PushToken.meta({
      description:
        "Whole for the scopes `devices` and `export`, and for the device itself; for others `…` and its last eight characters, because an app identifies itself by it",
      examples: [tokenExample],
    }),
    platform: Platform,
    provider: DeviceProvider.optional(),
    installation_id: InstallationId.optional(),
    app: DeviceApp.optional(),
    metadata: AppData,
    identifiers: AppData.meta({
      description:
        "What the app says of its installation. Herald itself reads `current_time_zone` (IANA, such as `Europe/Berlin`; also sent as `time_zone` or `timezone`) and `current_locale` (BCP 47; also sent as `locale` or `language`), and stores them under these names",
    }),
    status: DeviceStatus,
    inactive_reason: InactiveReason.optional().meta({
      description:
        "Why it is inactive. `unregistered`: its provider rejected the token; `requested`: by a request; `stale`: not seen for the project's `stale_after`",
    }),
    topics: z.array(z.string()),
    environment: ApnsEnvironment.optional(),
    tokens: z.array(FurtherToken).optional().meta({
      description: "Tokens of Apple's push types, with which `push_type` reaches the device. Absent: none",
    }),
    token_kind: FcmTokenKind.optional(),
    capabilities: CapabilityList.optional().meta({ description: "What the app's kit can do; absent: nothing" }),
    vapid_key_id: VapidKeyId.optional().meta({ description: "Web Push: the key that the subscription was made with" }),
    user_id: UserId.nullable().default(null).meta({ description: "The user of the device; null: none" }),
    identified_at: z.iso.datetime().optional().meta({ description: "When its user was last set" }),
    last_seen_at: z.iso.datetime().optional().meta({
      description:
        "When its app last registered, logged in, wrote metadata or opened a notification; stored at most once a day",
    }),
    created_at: z.iso.datetime(),
    updated_at: z.iso.datetime(),
  },
  {
    examples: [
      {
        id: "dev_06bq4ghm31tz5d2ns8y7k9w0ac",
        token: tokenExample,
        platform: "ios",
        provider: "apns",
        metadata: { plan: "pro" },
        identifiers: { current_locale: "de-DE", app_version: "2.4.1" },
        status: "active",
        topics: ["news"],
        environment: "production",
        user_id: "u_8412",
        identified_at: "2030-01-31T09:00:00.000Z",
        last_seen_at: "2030-01-31T09:00:00.000Z",
        created_at: "2030-01-01T09:00:00.000Z",
        updated_at: "2030-01-31T09:00:00.000Z",
      },
    ],
  },
);
export type Device = z.infer<typeof Device>;

/** The query parameters that filter devices. A device must match all of them. */
export const deviceFilterQuery = {
  status: DeviceStatus.optional().meta({ description: "Only devices with this status" }),
  platform: Platform.optional().meta({ description: "Only devices of this platform" }),
  user_id: UserId.optional().meta({ description: "Only devices of this user" }),
  app: AppId.optional().meta({ description: "Only devices that name this app" }),
  token: PushToken.optional().meta({ description: "The whole push token" }),
};
export const DeviceFilter = z.object(deviceFilterQuery);
export type DeviceFilter = z.infer<typeof DeviceFilter>;

/** The view of a device for a client without a credential. */
export const DeviceSummary = Device.pick({ id: true, status: true }).meta({ id: "DeviceSummary" });
export type DeviceSummary = z.infer<typeof DeviceSummary>;

/** A subscription's keys from its browser, and the project's key that it was made with. */
export const SubscriptionKeys = WebPushKeys.extend({
  vapid_key: VapidPublicKey.optional().meta({
    description:
      "The `applicationServerKey` that the subscription was made with. Absent: what is known of this endpoint stays, and a new one is taken to be made with the current key",
  }),
}).meta({ id: "SubscriptionKeys" });
export type SubscriptionKeys = z.infer<typeof SubscriptionKeys>;

const apnsToken = /^([0-9a-fA-F]{2}){8,100}$/;
const apnsTokenProblem = "must be an APNs device token: 16 to 200 hexadecimal digits";

type TokenShape = {
  platform: Platform;
  provider?: Provider | undefined;
  token: string;
  environment?: unknown;
  token_kind?: unknown;
  keys?: unknown;
};

/** Problems of a token's form and of fields that belong to other providers. One sentence per problem. */
export const tokenProblems = (device: TokenShape, tokenField: string): PathProblem[] => {
  const problems: PathProblem[] = [];
  const provider = servingProvider(device);
  const known = providersOf[device.platform];
  if (!known.includes(provider))
    problems.push({
      path: ["provider"],
      message: `must be ${known.map((one) => `\`${one}\``).join(" or ")} for platform ${device.platform}`,
    });
  if (provider === "apns" && !apnsToken.test(device.token))
    problems.push({ path: [tokenField], message: apnsTokenProblem });
  if (provider === "fcm" && !/^[A-Za-z0-9_:.-]+$/.test(device.token))
    problems.push({
      path: [tokenField],
      message: "must be an FCM token or Installation ID: letters, digits and `_`, `:`, `.`, `-`",
    });
  if (provider === "webpush" && !URL.canParse(device.token))
    problems.push({ path: [tokenField], message: "must be the subscription's endpoint, an https URL" });
  if (provider === "webpush" && device.keys === undefined)
    problems.push({ path: ["keys"], message: "is required for web: the subscription's `p256dh` and `auth`" });
  if (provider !== "webpush" && device.keys !== undefined)
    problems.push({ path: ["keys"], message: `is only for ${onlyFor(device, "web", "webpush")}` });
  if (provider !== "apns" && device.environment !== undefined)
    problems.push({ path: ["environment"], message: `is only for ${onlyFor(device, "ios", "apns")}` });
  if (provider !== "fcm" && device.token_kind !== undefined)
    problems.push({ path: ["token_kind"], message: "is only for platform android, or with provider fcm" });
  return problems;
};

/** The provider or platform that a field belongs to. */
const onlyFor = ({ platform }: TokenShape, own: Platform, provider: Provider): string =>
  platform === own ? `provider ${provider}` : `platform ${own}`;

const registration = {
  platform: Platform,
  provider: DeviceProvider.optional(),
  installation_id: InstallationId.optional(),
  app: DeviceApp.optional(),
  metadata: AppData.optional(),
  identifiers: AppData.optional(),
  environment: ApnsEnvironment.optional(),
  token_kind: FcmTokenKind.optional(),
  keys: SubscriptionKeys.optional(),
  capabilities: CapabilityList.optional(),
};

/** What a request of an app ignored: protected paths such as `metadata.user_id`, bad identifiers, and fields that a known device changes only with proof. */
export const Ignored = z.array(z.string()).meta({
  description:
    "What was left out of the body: paths that only the project's token writes (`protected_metadata`), a time zone or locale that is not valid, and fields of a known device that only its credential or a `user_token` of its user changes",
  examples: [["metadata.user_id", "environment"]],
});

/** Body of `POST /devices`. */
export const RegisterDevice = namedBody(
  "RegisterDevice",
  {
    device: z
      .strictObject({
        token: PushToken,
        ...registration,
        topics: z.array(TopicName).max(100).optional(),
        user_id: UserId.nullable()
          .optional()
          .meta({ description: "The user of the device; null: none; absent: unchanged" }),
      })
      .superRefine(withProblems((device) => tokenProblems(device, "token"))),
  },
  { examples: [{ device: { token: tokenExample, platform: "ios", topics: ["news"], metadata: { plan: "pro" } } }] },
);
export type RegisterDevice = z.infer<typeof RegisterDevice>;

/** Body of `PUT /identification`: `identifier` is the push token, `previous_identifier` the token that it replaces. */
export const Identification = z
  .strictObject({
    project_id: ProjectId,
    identifier: PushToken,
    previous_identifier: PushToken.optional().meta({
      description:
        "The push token that this one replaces. It keeps the device only with the device's credential or a `user_token` of the device's user; without either a new device registers",
    }),
    ...registration,
    user_token: UserToken.optional(),
  })
  .superRefine(withProblems((device) => tokenProblems({ ...device, token: device.identifier }, "identifier")))
  .meta({
    id: "Identification",
    examples: [
      {
        project_id: "prj_06bq4ghm31tz5d2ns8y7k9w0ac",
        identifier: tokenExample,
        platform: "ios",
        identifiers: { current_locale: "de-DE", app_version: "2.4.1" },
      },
    ],
  });

/** Body of `PUT /devices/{id}/tokens/{type}` and `PUT /devices/{id}/tokens/{type}/{name}`. */
export const PutFurtherToken = namedBody(
  "PutFurtherToken",
  {
    token: z.strictObject({
      token: PushToken.regex(apnsToken, apnsTokenProblem),
      environment: ApnsEnvironment.optional().meta({ description: "Absent: the device's" }),
    }),
  },
  { examples: [{ token: { token: tokenExample, environment: "production" } }] },
);

/** Body of `PATCH /devices/{id}`: `metadata` and `identifiers` are merge patches; a new Web Push subscription needs `keys`. */
export const ChangeDevice = namedBody("ChangeDevice", {
  device: changedFields(
    {
      token: PushToken.optional(),
      keys: SubscriptionKeys.optional(),
      metadata: AppData.optional(),
      identifiers: AppData.optional(),
      status: DeviceStatus.optional(),
      installation_id: InstallationId.nullable().optional(),
      capabilities: CapabilityList.optional(),
      app: DeviceApp.nullable().optional(),
      user_id: UserId.nullable()
        .optional()
        .meta({ description: "With a project token: the user of the device; null: none" }),
      user_token: UserToken.optional().meta({ description: "With a device credential: logs the user in" }),
    },
    { examples: [{ metadata: { plan: "pro" }, status: "active" }] },
  ),
});

/**
 * Body of `PATCH /metadata`. The device is named by its credential, by `device_id` (with a project token), or by `project_id` and
 * `identifier` (client identity), with `platform` and `provider` if two devices have the same token.
 */
export const ChangeMetadata = namedBody(
  "ChangeMetadata",
  {
    metadata: AppData,
    device_id: DeviceId.optional(),
    project_id: ProjectId.optional(),
    identifier: PushToken.optional(),
    platform: Platform.optional(),
    provider: DeviceProvider.optional(),
    user_token: UserToken.optional(),
  },
  { examples: [{ metadata: { plan: "pro", trial: null } }] },
);

/** With `match`, the list is in the order of hashes of device ids. */
const notBesideMatch = {
  page: "cannot be combined with match, which has no order to count pages in; walk by `after`",
  sort: "cannot be combined with match, which lists devices in the order of a send's batches",
  status: "cannot be combined with match, which lists active devices alone, as a send does",
} as const;

/** Refuses the parameters that cannot be combined with `match`. */
export const checkMatch = withProblems((query: Readonly<Record<string, unknown>>) =>
  Object.entries(notBesideMatch)
    .filter(([name]) => query.match !== undefined && query[name] !== undefined)
    .map(([name, message]) => ({ path: [name], message })),
);

/** The query of `GET /devices`. */
export const DeviceListQuery = z
  .strictObject({
    ...listQuery,
    ...deviceFilterQuery,
    match: NewTarget.optional().meta({
      description:
        "A target, such as `topic:news`: only the active devices that a send to it reaches. Walk by `after` alone: a page may have fewer devices than `per_page`, even none, before `next` is null. `sort`, `page` and `status` cannot be combined with it",
      examples: ["metadata:plan=pro"],
    }),
  })
  .superRefine(checkMatch);
