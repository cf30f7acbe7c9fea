import { z } from "zod";
import { AppData } from "../app-data.ts";
import { AskedRules } from "../asked-rules.ts";
import { CapabilityList } from "../capabilities.ts";
import { Recipient } from "../deliver-batch.ts";
import { defineList, defineRequest } from "../envelope.ts";
import { Project, ProjectKey, ProjectToken, Scope } from "../http/v1/admin.ts";
import { ChangeDevice } from "../http/v1/device-bodies.ts";
import { InstallationId, PushToken } from "../http/v1/device-fields.ts";
import { Device, DeviceSummary, deviceFilterQuery } from "../http/v1/devices.ts";
import { LimitName, OwnLimits } from "../http/v1/limits.ts";
import { LocalTime } from "../http/v1/local-time.ts";
import { isDeepPage, ListRequest, PageRequest, pageOf } from "../http/v1/pagination.ts";
import { DeviceProblem } from "../http/v1/put-devices.ts";
import { QuietHours } from "../http/v1/quiet-hours.ts";
import { ReceiptShare } from "../http/v1/receipt-fields.ts";
import { SubscriptionResult, Topic, TopicName, TopicReference } from "../http/v1/topics.ts";
import { DeviceId, maxGroupSize, ProjectId, TokenId, TopicId } from "../ids.ts";
import { ApnsEnvironment, AppId, FcmTokenKind, Platform, Provider, WebPushKeys } from "../platforms.ts";
import { PushKey } from "../push-types.ts";
import { SecretHash } from "../secrets.ts";
import { UserId, UserToken } from "../users.ts";

const project = { projectId: ProjectId };
const device = { ...project, deviceId: DeviceId };
const done = z.object({});

export const CreateProjectRequest = defineRequest(
  "registry.projects.create" /** The gateway creates the id and the token, so that a repeated request creates the same project. */,
  {
    ...project,
    name: z.string(),
    key: ProjectKey.optional(),
    openRegistration: z.boolean(),
    protectedMetadata: z.array(z.string()).optional(),
    /** Both or none. */
    tokenId: TokenId.optional(),
    tokenHash: SecretHash.optional(),
  },
  z.object({ project: Project, created: z.boolean() }),
);
export const ListProjects = defineList(
  "registry.projects.list",
  /** `only`: of these projects. */
  { page: PageRequest, only: z.array(ProjectId).optional(), key: ProjectKey.optional() },
  Project,
);
/** Throws `project-key-taken`. */
export const SetProjectKeyRequest = defineRequest(
  "registry.projects.set-key",
  { ...project, key: ProjectKey },
  Project,
);
/** The number of the project's devices, and its limit. */
export const GetDeviceQuota = defineRequest(
  "registry.projects.device-quota",
  project,
  z.object({ devices: z.number().int().min(0), limit: z.number().int().min(1) }),
);
/** Null restores a default. */
export const ChangeLimitsRequest = defineRequest(
  "registry.projects.change-limits",
  { ...project, limits: z.partialRecord(LimitName, z.number().int().min(0).nullable()) },
  z.object({ limits: OwnLimits }),
);
export const GetProject = defineRequest("registry.projects.get", project, Project);
export const ChangeProjectRequest = defineRequest(
  "registry.projects.change",
  {
    ...project,
    name: z.string().optional(),
    openRegistration: z.boolean().optional(),
    protectedMetadata: z.array(z.string()).optional(),
    /** Null: off. */
    staleAfter: z.string().nullable().optional(),
    receipts: ReceiptShare.optional(),
    /** Null: none. */
    quietHours: QuietHours.nullable().optional(),
    defaultTimeZone: z.string().optional(),
  },
  Project,
);
export const DeleteProject = defineRequest("registry.projects.delete", project, done);

export const CreateTokenRequest = defineRequest(
  "registry.tokens.create",
  {
    ...project,
    tokenId: TokenId,
    tokenHash: SecretHash,
    name: z.string(),
    scopes: z.array(Scope),
    expiresAt: z.iso.datetime().optional(),
  },
  ProjectToken,
);
export const ListTokens = defineList("registry.tokens.list", { ...project, page: PageRequest }, ProjectToken);
export const RevokeToken = defineRequest("registry.tokens.revoke", { ...project, tokenId: TokenId }, done);

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

/** Upsert by (project, platform, provider, token). Always rotates the credential. */
export const RegisterDeviceRequest = defineRequest(
  "registry.devices.register",
  { ...registration, topics: z.array(TopicName), userId: UserId.nullable().optional() },
  z.object({ device: Device, credential: z.string(), created: z.boolean() }),
);
/**
 * {@link RegisterDeviceRequest} for an unauthenticated client. A known device answers with a credential only if it has none yet and the
 * user token is of the user whom its backend gave it.
 */
export const IdentifyDevice = defineRequest(
  "registry.devices.identify",
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
);
/** Upserts up to 500 devices by (project, platform, token), each accepted or refused alone, in order. Creates and rotates no credential. */
export const PutDevicesRequest = defineRequest(
  "registry.devices.put",
  { ...project, devices: z.array(z.unknown()).min(1).max(500) },
  z.object({
    results: z.array(
      z.union([
        z.object({ result: z.enum(["created", "updated", "unchanged"]), id: DeviceId }),
        z.object({ result: z.literal("refused"), problems: z.array(DeviceProblem).min(1) }),
      ]),
    ),
  }),
  () => true,
);
export const ListDevices = defineRequest(
  "registry.devices.list",
  {
    ...project,
    ...deviceFilterQuery,
    /** A target that the devices match; it requires paging by key. */
    match: z.string().optional(),
    page: ListRequest,
  },
  pageOf(Device),
  ({ match, page }) => match !== undefined || isDeepPage({ page }),
);
export const GetDevice = defineRequest("registry.devices.get", device, Device);
export const ChangeDeviceRequest = defineRequest(
  "registry.devices.change",
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
);
/** By client identity: the device with this push token. `platform` and `provider` select one if two devices have it. */
export const ChangeMetadataByToken = defineRequest(
  "registry.devices.change-by-token",
  {
    ...project,
    token: PushToken,
    platform: Platform.optional(),
    provider: Provider.optional(),
    metadata: AppData,
    userToken: UserToken.optional(),
  },
  DeviceSummary,
);
const furtherToken = { ...device, push: PushKey, byApp: z.boolean().optional() };
/** Stores the token of a push type, or replaces it. */
export const PutFurtherTokenRequest = defineRequest(
  "registry.devices.put-token",
  { ...furtherToken, token: PushToken, environment: ApnsEnvironment.optional() },
  done,
);
/** Not an error if the device has none. */
export const DeleteFurtherToken = defineRequest("registry.devices.delete-token", furtherToken, done);
export const DeleteDevice = defineRequest("registry.devices.delete", device, done);
/** Whether a credential is the device's current one. */
export const AuthenticateDevice = defineRequest(
  "registry.devices.authenticate",
  { ...device, credentialHash: z.string() },
  z.object({ valid: z.boolean() }),
);

export const ListTopics = defineList(
  "registry.topics.list",
  { ...project, page: ListRequest, prefix: z.string().optional() },
  Topic,
);
export const GetTopic = defineRequest("registry.topics.get", { ...project, topic: TopicReference }, Topic);
export const CreateTopicRequest = defineRequest(
  "registry.topics.create",
  { ...project, topicId: TopicId, name: TopicName, closed: z.boolean().optional() },
  z.object({ topic: Topic, created: z.boolean() }),
);
export const ChangeTopicRequest = defineRequest(
  "registry.topics.change",
  { ...project, topic: TopicReference, closed: z.boolean() },
  Topic,
);
export const DeleteTopic = defineRequest("registry.topics.delete", { ...project, topic: TopicReference }, done);

const subscription = {
  ...project,
  topic: TopicReference,
  devices: z.array(DeviceId).min(1).max(1000),
  /** A project token creates missing topics and may subscribe devices to closed ones; a device may not. */
  create: z.boolean(),
};
export const SubscribeDevices = defineRequest("registry.topics.subscribe", subscription, SubscriptionResult);
export const UnsubscribeDevices = defineRequest("registry.topics.unsubscribe", subscription, SubscriptionResult);

const targets = z.array(z.string()).min(1).max(1000);
/** Which devices of its targets a send is for; absent: all. `push`: those with a token of the push type. `without`: those without that one. */
const audience = {
  targets,
  app: AppId.optional(),
  push: PushKey.optional(),
  without: PushKey.optional(),
  rules: AskedRules.optional(),
};
const platformCounts = z.object({ ios: z.number().int(), android: z.number().int(), web: z.number().int() });

/** The rules of a send that is not stored, for {@link CountAudience}. `zone`: of devices without one. */
export const CountedRules = z.object({
  hours: QuietHours.optional(),
  /** Those of users count, too. */
  ownHours: z.boolean(),
  zone: z.string(),
  /** When it would be sent, unless it has a local time. */
  at: z.iso.datetime(),
  expiresAt: z.iso.datetime(),
  local: LocalTime.optional(),
});
export type CountedRules = z.infer<typeof CountedRules>;

const byText = z.record(z.string(), z.number().int());

/** The exact number of active devices that match the targets, each counted once. For dry runs; costs as much as an expansion. */
export const CountAudience = defineRequest(
  "registry.audience.count",
  /** `byZone`: also by time zone. */
  { ...project, ...audience, byZone: z.boolean().optional(), judge: CountedRules.optional() },
  z.object({
    devices: platformCounts,
    unmatched: z.array(z.string()),
    zones: byText.optional(),
    /** With `judge`: those of `devices` that would get nothing, by reason, and those that would get it later, by the time. */
    skips: byText.optional(),
    delayed: byText.optional(),
  }),
  () => true,
);

/** The time zones that devices of the targets may have: those of the devices for a small audience, otherwise those of all the project's. */
export const ListZones = defineRequest(
  "registry.audience.zones",
  { ...project, ...audience },
  z.object({ zones: z.array(z.string()) }),
);

/** The devices of one platform and provider that a send reaches, sorted by id. */
const ResolvedBatch = z.object({ platform: Platform, provider: Provider.optional(), devices: z.array(Recipient) });

/** The recipients of small sends, in the order of the request. `null`: more devices than `limit`, or targets without an index. */
export const ResolveSends = defineRequest(
  "registry.audience.resolve",
  {
    ...project,
    sends: z.array(z.object(audience)).min(1).max(maxGroupSize),
    limit: z.number().int().min(1),
  },
  z.object({
    sends: z.array(z.object({ batches: z.array(ResolvedBatch), unmatched: z.array(z.string()) }).nullable()),
  }),
);

/** The number of active Web Push subscriptions per key. Subscriptions without `keyId` are older than key ids. */
export const CountVapidKeys = defineRequest(
  "registry.audience.count-vapid-keys",
  project,
  z.object({ subscriptions: z.array(z.object({ keyId: z.string().optional(), devices: z.number().int() })) }),
  () => true,
);

/** Whether the targets match one device in its current state, and which entry does. */
export const ExplainDevice = defineRequest(
  "registry.audience.explain",
  // A notification with recipients has no targets.
  { ...device, ...audience, targets: z.array(z.string()).max(1000) },
  z.object({
    device: Device,
    /** The first entry that matches, as sent, even if the device is inactive or of another app. */
    matched: z.string().optional(),
    /** It has no token of the push type. */
    noToken: z.literal(true).optional(),
    /** The send is for another app. */
    otherApp: z.literal(true).optional(),
    /** The device of the same app installation that gets the push instead: its platform's own provider serves it. */
    reachedThrough: DeviceId.optional(),
  }),
);
