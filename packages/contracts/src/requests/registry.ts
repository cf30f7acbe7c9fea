import { z } from "zod";
import { AppData } from "../app-data.ts";
import { Recipient } from "../commands.ts";
import { defineRequest } from "../envelope.ts";
import { Project, ProjectToken, Scope } from "../http/v1/admin.ts";
import {
  ChangeDevice,
  Device,
  DeviceSummary,
  deviceFilterQuery,
  InstallationId,
  PushToken,
} from "../http/v1/devices.ts";
import { isDeepPage, ListRequest, PageRequest, pageOf } from "../http/v1/pagination.ts";
import { DeviceProblem } from "../http/v1/put-devices.ts";
import { SubscriptionResult, Topic, TopicName, TopicReference } from "../http/v1/topics.ts";
import { DeviceId, maxGroupSize, ProjectId, TokenId, TopicId } from "../ids.ts";
import { ApnsEnvironment, FcmTokenKind, Platform, Provider, WebPushKeys } from "../platforms.ts";
import { UserId, UserToken } from "../users.ts";

const project = { projectId: ProjectId };
const device = { ...project, deviceId: DeviceId };
const done = z.object({});

export const CreateProjectRequest = defineRequest(
  "registry.projects.create" /** The gateway creates the id and the token, so that a repeated request creates the same project. */,
  z.object({
    ...project,
    name: z.string(),
    openRegistration: z.boolean(),
    protectedMetadata: z.array(z.string()).optional(),
    tokenId: TokenId,
    tokenHash: z.string(),
  }),
  z.object({ project: Project, created: z.boolean() }),
);
export const ListProjects = defineRequest(
  "registry.projects.list",
  z.object({ page: PageRequest }),
  pageOf(Project),
  isDeepPage,
);
/** How many devices the project has, of how many it may have. */
export const GetDeviceQuota = defineRequest(
  "registry.projects.device-quota",
  z.object(project),
  z.object({ devices: z.number().int().min(0), limit: z.number().int().min(1) }),
);
export const GetProject = defineRequest("registry.projects.get", z.object(project), Project);
export const ChangeProjectRequest = defineRequest(
  "registry.projects.change",
  z.object({
    ...project,
    name: z.string().optional(),
    openRegistration: z.boolean().optional(),
    protectedMetadata: z.array(z.string()).optional(),
    /** Null: off. */
    staleAfter: z.string().nullable().optional(),
  }),
  Project,
);
export const DeleteProject = defineRequest("registry.projects.delete", z.object(project), done);

export const CreateTokenRequest = defineRequest(
  "registry.tokens.create",
  z.object({
    ...project,
    tokenId: TokenId,
    tokenHash: z.string(),
    name: z.string(),
    scopes: z.array(Scope),
    expiresAt: z.iso.datetime().optional(),
  }),
  ProjectToken,
);
export const ListTokens = defineRequest(
  "registry.tokens.list",
  z.object({ ...project, page: PageRequest }),
  pageOf(ProjectToken),
  isDeepPage,
);
export const RevokeToken = defineRequest("registry.tokens.revoke", z.object({ ...project, tokenId: TokenId }), done);

/** The Web Push key of a subscription: the one that the app named, and the one for a new subscription that names none. */
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
  tokenKind: FcmTokenKind.optional(),
  keys: WebPushKeys.optional(),
  ...subscribedWith,
};

/** Upsert by (project, platform, provider, token). Always rotates the credential. */
export const RegisterDeviceRequest = defineRequest(
  "registry.devices.register",
  z.object({ ...registration, topics: z.array(TopicName), userId: UserId.nullable().optional() }),
  z.object({ device: Device, credential: z.string(), created: z.boolean() }),
);
/** The same for an unauthenticated client: the response for a known device has no credential. */
export const IdentifyDevice = defineRequest(
  "registry.devices.identify",
  z.object({
    ...registration,
    previousToken: PushToken.optional(),
    userToken: UserToken.optional(),
    /** The device whose credential came with the request. */
    provenDevice: DeviceId.optional(),
    /** False: the address has registered too many new devices, so only a known device may register. */
    mayCreate: z.boolean().optional(),
  }),
  z.object({ device: DeviceSummary, credential: z.string().optional(), created: z.boolean() }),
);
/** Upsert of up to 500 devices by (project, platform, token), each accepted or refused alone, in order. Makes and rotates no credential. */
export const PutDevicesRequest = defineRequest(
  "registry.devices.put",
  z.object({ ...project, devices: z.array(z.unknown()).min(1).max(500) }),
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
  z.object({
    ...project,
    ...deviceFilterQuery,
    /** A target that the devices match; then the page is by key. */
    match: z.string().optional(),
    page: ListRequest,
  }),
  pageOf(Device),
  ({ match, page }) => match !== undefined || isDeepPage({ page }),
);
export const GetDevice = defineRequest("registry.devices.get", z.object(device), Device);
export const ChangeDeviceRequest = defineRequest(
  "registry.devices.change",
  z.object({
    ...device,
    change: ChangeDevice.shape.device,
    ...subscribedWith,
    /** The device is not found unless it belongs to this user. */
    ofUser: UserId.optional(),
    /** The device itself asks, so it was seen. */
    byApp: z.boolean().optional(),
  }),
  Device,
);
/** By client identity: the device with this push token, and `platform` and `provider` if two devices have it. */
export const ChangeMetadataByToken = defineRequest(
  "registry.devices.change-by-token",
  z.object({
    ...project,
    token: PushToken,
    platform: Platform.optional(),
    provider: Provider.optional(),
    metadata: AppData,
    userToken: UserToken.optional(),
  }),
  DeviceSummary,
);
export const DeleteDevice = defineRequest("registry.devices.delete", z.object(device), done);
/** Whether a credential is the device's current one. */
export const AuthenticateDevice = defineRequest(
  "registry.devices.authenticate",
  z.object({ ...device, credentialHash: z.string() }),
  z.object({ valid: z.boolean() }),
);

export const ListTopics = defineRequest(
  "registry.topics.list",
  z.object({ ...project, page: ListRequest }),
  pageOf(Topic),
  isDeepPage,
);
export const GetTopic = defineRequest("registry.topics.get", z.object({ ...project, topic: TopicReference }), Topic);
export const CreateTopicRequest = defineRequest(
  "registry.topics.create",
  z.object({ ...project, topicId: TopicId, name: TopicName, closed: z.boolean().optional() }),
  z.object({ topic: Topic, created: z.boolean() }),
);
export const ChangeTopicRequest = defineRequest(
  "registry.topics.change",
  z.object({ ...project, topic: TopicReference, closed: z.boolean() }),
  Topic,
);
export const DeleteTopic = defineRequest(
  "registry.topics.delete",
  z.object({ ...project, topic: TopicReference }),
  done,
);

const subscription = z.object({
  ...project,
  topic: TopicReference,
  devices: z.array(DeviceId).min(1).max(1000),
  /** A project token creates missing topics and may subscribe devices to closed ones; a device may not. */
  create: z.boolean(),
});
export const SubscribeDevices = defineRequest("registry.topics.subscribe", subscription, SubscriptionResult);
export const UnsubscribeDevices = defineRequest("registry.topics.unsubscribe", subscription, SubscriptionResult);

const targets = z.array(z.string()).min(1).max(1000);
const platformCounts = z.object({ ios: z.number().int(), android: z.number().int(), web: z.number().int() });

/** The exact number of active devices that match the targets, each counted once. For dry runs; costs as much as an expansion. */
export const CountAudience = defineRequest(
  "registry.audience.count",
  z.object({ ...project, targets }),
  z.object({ devices: platformCounts, unmatched: z.array(z.string()) }),
  () => true,
);

/** The devices of one platform and provider that a send reaches, sorted by id. */
const ResolvedBatch = z.object({ platform: Platform, provider: Provider.optional(), devices: z.array(Recipient) });

/**
 * The recipients of small sends, of any projects, in the order of the request. `null`: more devices than `limit`, or targets without an
 * index.
 */
export const ResolveSends = defineRequest(
  "registry.audience.resolve",
  z.object({
    sends: z
      .array(z.object({ ...project, targets }))
      .min(1)
      .max(maxGroupSize),
    limit: z.number().int().min(1),
  }),
  z.object({
    sends: z.array(z.object({ batches: z.array(ResolvedBatch), unmatched: z.array(z.string()) }).nullable()),
  }),
);

/** The number of active Web Push subscriptions per key; those without `keyId` are older than key ids. */
export const CountVapidKeys = defineRequest(
  "registry.audience.count-vapid-keys",
  z.object(project),
  z.object({ subscriptions: z.array(z.object({ keyId: z.string().optional(), devices: z.number().int() })) }),
  () => true,
);

/** Whether the targets match one device as it is now, and which entry does. */
export const ExplainDevice = defineRequest(
  "registry.audience.explain",
  z.object({ ...device, targets }),
  z.object({
    device: Device,
    /** The first entry of the targets that matches, as it was sent, even if the device is inactive. */
    matched: z.string().optional(),
    /** The device of the same app installation that gets the push instead: its platform's own provider serves it. */
    reachedThrough: DeviceId.optional(),
  }),
);
