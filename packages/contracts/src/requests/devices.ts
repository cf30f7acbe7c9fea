import { z } from "zod";
import { AppData } from "../app-data.ts";
import { CapabilityList } from "../capabilities.ts";
import { defineRequests, listRequest, oneRequest } from "../envelope.ts";
import { ChangeDevice } from "../http/v1/device-bodies.ts";
import { InstallationId, PushToken } from "../http/v1/device-fields.ts";
import { Device, DeviceListQuery, DeviceSummary, deviceFilterQuery } from "../http/v1/devices.ts";
import { timeRange } from "../http/v1/pagination.ts";
import { EntryProblem } from "../http/v1/put-devices.ts";
import { TopicName } from "../http/v1/topics.ts";
import { DeviceId, ProjectId } from "../ids.ts";
import { ApnsEnvironment, AppId, FcmTokenKind, Platform, Provider, WebPushKeys } from "../platforms.ts";
import { PushKey } from "../push-types.ts";
import { UserId, UserToken } from "../users.ts";
import { exportRequest } from "./export-request.ts";

const project = { projectId: ProjectId };
const device = { ...project, deviceId: DeviceId };
const done = z.object({});

/** The Web Push key of a subscription: the key that the app named, and the key to assume for a new subscription that names none. */
const subscribedWith = { vapidKeyId: z.string().optional(), currentVapidKeyId: z.string().optional() };

const registration = {
  ...project,
  platform: Platform,
  provider: Provider.optional(),
  token: PushToken,
  installationId: InstallationId.optional(),
  metadata: AppData.optional(),
  identifiers: AppData.optional(),
  environment: ApnsEnvironment.optional(),
  app: AppId.optional(),
  tokenKind: FcmTokenKind.optional(),
  keys: WebPushKeys.optional(),
  /** Absent: unchanged. */
  capabilities: CapabilityList.optional(),
  ...subscribedWith,
};

const furtherToken = { ...device, push: PushKey, byApp: z.boolean().optional() };

export const deviceRequests = defineRequests("registry.devices", {
  /** Upsert by (project, platform, provider, token). Always rotates the credential. */
  register: oneRequest(
    { ...registration, topics: z.array(TopicName), userId: UserId.nullable().optional() },
    z.object({ device: Device, credential: z.string(), created: z.boolean() }),
  ),
  /**
   * {@link deviceRequests.register} for an unauthenticated client. A known device answers with a credential only if it has none yet and the
   * user token is of the user whom its backend gave it.
   */
  identify: oneRequest(
    {
      ...registration,
      previousToken: PushToken.optional(),
      userToken: UserToken.optional(),
      /** The device whose credential the request contained. */
      provenDevice: DeviceId.optional(),
      /** False: the address has registered too many new devices, so only a known device may register. */
      mayCreate: z.boolean().optional(),
    },
    z.object({
      device: DeviceSummary,
      credential: z.string().optional(),
      created: z.boolean(),
      /** Fields as in the API that a known device changes only with proof. */
      ignored: z.array(z.string()).optional(),
    }),
  ),
  /** Upserts up to 500 devices by (project, platform, token), each accepted or refused alone, in order. Creates and rotates no credential. */
  put: oneRequest(
    { ...project, devices: z.array(z.unknown()).min(1).max(500) },
    z.object({
      results: z.array(
        z.union([
          z.object({ result: z.enum(["created", "updated", "unchanged"]), id: DeviceId }),
          z.object({ result: z.literal("refused"), problems: z.array(EntryProblem).min(1) }),
        ]),
      ),
    }),
    () => true,
  ),
  /** `match` requires paging by key. */
  list: listRequest(project, Device, DeviceListQuery, ({ match }) => match !== undefined),
  get: oneRequest(device, Device),
  change: oneRequest(
    {
      ...device,
      change: ChangeDevice.shape.device,
      ...subscribedWith,
      /** The device is not found unless it belongs to this user. */
      ofUser: UserId.optional(),
      /** The device itself sent the change, so it counts as seen. */
      byApp: z.boolean().optional(),
    },
    Device,
  ),
  /** By client identity: the device with this push token. `platform` and `provider` select one if two devices have it. */
  changeByToken: oneRequest(
    {
      ...project,
      token: PushToken,
      platform: Platform.optional(),
      provider: Provider.optional(),
      metadata: AppData,
      userToken: UserToken.optional(),
    },
    DeviceSummary,
  ),
  /**
   * Stores the token of a push type, or replaces it. `cameAt`: when the app sent the token, if it is one of an activity without
   * {@link deviceRequests.noteState}: the state of the activity is to be sent to it.
   */
  putToken: oneRequest(
    { ...furtherToken, token: PushToken, environment: ApnsEnvironment.optional(), channels: z.boolean().optional() },
    z.object({ cameAt: z.iso.datetime().optional() }),
  ),
  /** The state of an activity is on its way to this token: a repeat of the token does not ask for it. Not an error if the device has another. */
  noteState: oneRequest({ ...device, push: PushKey, tokenHash: z.string() }, done),
  /** Not an error if the device has none. */
  deleteToken: oneRequest(furtherToken, done),
  delete: oneRequest(device, done),
  /** Whether a credential is the device's current one. */
  authenticate: oneRequest({ ...device, credentialHash: z.string() }, z.object({ valid: z.boolean() })),
  /** Rows are `ExportedDevice`. */
  export: exportRequest(
    {
      ...deviceFilterQuery,
      ...timeRange,
      keys: z.boolean(),
      /** A target that the devices match. Then `after` is a device or the `next` of an answer, and a page before the last may be empty. */
      match: z.string().optional(),
    },
    ({ match }) => match !== undefined,
  ),
});
