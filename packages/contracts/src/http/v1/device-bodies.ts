import { z } from "zod";
import { AppData } from "../../app-data.ts";
import { CapabilityList } from "../../capabilities.ts";
import { DeviceId, ProjectId } from "../../ids.ts";
import { changedFields, namedBody, withProblems } from "../../named.ts";
import {
  ApnsEnvironment,
  apnsToken,
  canonicalToken,
  FcmTokenKind,
  Platform,
  servingProvider,
} from "../../platforms.ts";
import { UserId, UserToken } from "../../users.ts";
import {
  apnsTokenProblem,
  DeviceApp,
  DeviceProvider,
  InstallationId,
  KnownToken,
  PushToken,
  SubscriptionKeys,
  tokenExample,
  tokenProblems,
  withCanonicalToken,
} from "./device-fields.ts";
import { DeviceStatus } from "./devices.ts";
import { TopicName } from "./topics.ts";

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
      .overwrite(withCanonicalToken)
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
  .overwrite((device) => {
    const { identifier, previous_identifier: previous } = device;
    const provider = servingProvider(device);
    return {
      ...device,
      identifier: canonicalToken(identifier, provider),
      ...(previous !== undefined && { previous_identifier: canonicalToken(previous, provider) }),
    };
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
      token: PushToken.regex(apnsToken, apnsTokenProblem).overwrite((token) => canonicalToken(token, "apns")),
      environment: ApnsEnvironment.optional().meta({ description: "Absent: the device's" }),
      channels: z.boolean().optional().meta({
        description: "Of `liveactivity`: iOS 18 or later, so that a start may name a broadcast channel",
      }),
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
    identifier: KnownToken.optional(),
    platform: Platform.optional(),
    provider: DeviceProvider.optional(),
    user_token: UserToken.optional(),
  },
  { examples: [{ metadata: { plan: "pro", trial: null } }] },
);
