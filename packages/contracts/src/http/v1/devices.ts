import { z } from "zod";
import { AppData } from "../../app-data.ts";
import { CapabilityList } from "../../capabilities.ts";
import { DeviceId } from "../../ids.ts";
import { named, withProblems } from "../../named.ts";
import { ApnsEnvironment, AppId, FcmTokenKind, Platform } from "../../platforms.ts";
import { PushName, TokenType } from "../../push-types.ts";
import { UserId } from "../../users.ts";
import { VapidKeyId } from "../../vapid.ts";
import { DeviceApp, DeviceProvider, InstallationId, KnownToken, PushToken, tokenExample } from "./device-fields.ts";
import { NewTarget } from "./notification-limits.ts";
import { listQuery } from "./pagination.ts";

/** A push token of one of Apple's push types, beside the device token. */
export const FurtherToken = named("FurtherToken", {
  type: TokenType,
  name: PushName.optional().meta({
    description: "Of controls: their kind; of `liveactivity`: the type of the attributes; of `activity`: its id",
  }),
  token: z.string().meta({ description: "Shown whole where the device's `token` is", examples: [tokenExample] }),
  environment: ApnsEnvironment.optional().meta({ description: "Absent: the device's" }),
  channels: z.literal(true).optional().meta({ description: "Of `liveactivity`: a start may name a broadcast channel" }),
  registered_at: z.iso.datetime().meta({ description: "When the app last sent it" }),
});
export type FurtherToken = z.infer<typeof FurtherToken>;

export const DeviceStatus = z.enum(["active", "inactive"]).meta({ id: "DeviceStatus" });
export type DeviceStatus = z.infer<typeof DeviceStatus>;

/** Why a token is wrong for ever, although its provider does not call it unregistered. */
export const BadTokenReason = z.enum(["token-invalid", "endpoint-forbidden"]);
export type BadTokenReason = z.infer<typeof BadTokenReason>;

export const InactiveReason = z
  .enum(["unregistered", ...BadTokenReason.options, "requested", "stale"])
  .meta({ id: "InactiveReason" });
export type InactiveReason = z.infer<typeof InactiveReason>;

/** A device in the API. `topics` are names. */
export const Device = named(
  "Device",
  {
    id: DeviceId,
    token: PushToken.meta({
      description:
        "Complete for the scopes `devices` and `export`, and for the device itself; for others `…` and its last eight characters, because an app identifies itself by it",
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
        "Why it is inactive. `unregistered`: its provider says that the token is not in use any more; `token-invalid`: its provider says that it is no token; `endpoint-forbidden`: Herald may never send to its Web Push endpoint; `requested`: by a request; `stale`: not seen for the project's `stale_after`",
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
    last_opened_at: z.iso.datetime().optional().meta({
      description: "When a notification was last opened on it, to within a day; absent: none was",
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
        last_opened_at: "2030-01-31T09:00:00.000Z",
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
  token: KnownToken.optional().meta({ description: "The whole push token" }),
};
export const DeviceFilter = z.object(deviceFilterQuery);
export type DeviceFilter = z.infer<typeof DeviceFilter>;

/** The view of a device for a client without a credential. */
export const DeviceSummary = Device.pick({ id: true, status: true }).meta({ id: "DeviceSummary" });
export type DeviceSummary = z.infer<typeof DeviceSummary>;

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
