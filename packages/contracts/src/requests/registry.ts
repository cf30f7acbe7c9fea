import { z } from "zod";
import { AppData } from "../app-data.ts";
import { Recipient } from "../commands.ts";
import { defineRequest } from "../envelope.ts";
import { Project, ProjectToken, Scope } from "../http/v1/admin.ts";
import { ChangeDevice, Device, DeviceStatus, DeviceSummary, PushToken } from "../http/v1/devices.ts";
import { isDeepPage, PageRequest, pageOf } from "../http/v1/pagination.ts";
import { SubscriptionResult, Topic, TopicName, TopicReference } from "../http/v1/topics.ts";
import { DeviceId, maxGroupSize, ProjectId, TokenId, TopicId } from "../ids.ts";
import { ApnsEnvironment, FcmTokenKind, Platform, WebPushKeys } from "../platforms.ts";
import { UserId, UserToken } from "../users.ts";

const project = { projectId: ProjectId };
const device = { ...project, deviceId: DeviceId };
const done = z.object({});

export const CreateProjectRequest = defineRequest(
  "registry.projects.create" /** The gateway makes the id and the token, so that a repeated request makes the same project. */,
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
export const GetProject = defineRequest("registry.projects.get", z.object(project), Project);
export const ChangeProjectRequest = defineRequest(
  "registry.projects.change",
  z.object({
    ...project,
    name: z.string().optional(),
    openRegistration: z.boolean().optional(),
    protectedMetadata: z.array(z.string()).optional(),
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

/** The Web Push key of a subscription: the one that the app named, and what to take for a subscription that is new and names none. */
const subscribedWith = { vapidKeyId: z.string().optional(), currentVapidKeyId: z.string().optional() };

const registration = {
  ...project,
  platform: Platform,
  token: PushToken,
  metadata: AppData.optional(),
  identifiers: AppData.optional(),
  environment: ApnsEnvironment.optional(),
  tokenKind: FcmTokenKind.optional(),
  keys: WebPushKeys.optional(),
  ...subscribedWith,
};

/** Upsert by (project, platform, token). Always rotates the credential. */
export const RegisterDeviceRequest = defineRequest(
  "registry.devices.register",
  z.object({ ...registration, topics: z.array(TopicName), userId: UserId.nullable().optional() }),
  z.object({ device: Device, credential: z.string(), created: z.boolean() }),
);
/** The same for an unauthenticated client: a known device answers no credential. */
export const IdentifyDevice = defineRequest(
  "registry.devices.identify",
  z.object({
    ...registration,
    previousToken: PushToken.optional(),
    userToken: UserToken.optional(),
    /** The device whose credential came with the request. */
    provenDevice: DeviceId.optional(),
    /** False: its address has registered too many new devices, so only a known one may register. */
    mayCreate: z.boolean().optional(),
  }),
  z.object({ device: DeviceSummary, credential: z.string().optional(), created: z.boolean() }),
);
export const ListDevices = defineRequest(
  "registry.devices.list",
  z.object({ ...project, status: DeviceStatus.optional(), page: PageRequest }),
  pageOf(Device),
  isDeepPage,
);
export const GetDevice = defineRequest("registry.devices.get", z.object(device), Device);
export const ChangeDeviceRequest = defineRequest(
  "registry.devices.change",
  z.object({
    ...device,
    change: ChangeDevice.shape.device,
    ...subscribedWith,
    /** Only while the device is this user's; else it is not found. */
    ofUser: UserId.optional(),
  }),
  Device,
);
/** By client identity: the device that holds the token, with `platform` where two do. */
export const ChangeMetadataByToken = defineRequest(
  "registry.devices.change-by-token",
  z.object({
    ...project,
    token: PushToken,
    platform: Platform.optional(),
    metadata: AppData,
    userToken: UserToken.optional(),
  }),
  DeviceSummary,
);
export const DeleteDevice = defineRequest("registry.devices.delete", z.object(device), done);
/** Whether a device credential is the current one of its device. */
export const AuthenticateDevice = defineRequest(
  "registry.devices.authenticate",
  z.object({ ...device, credentialHash: z.string() }),
  z.object({ valid: z.boolean() }),
);

export const ListTopics = defineRequest(
  "registry.topics.list",
  z.object({ ...project, page: PageRequest }),
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
  /** A project token that names a topic which does not exist creates it, and subscribes to a closed one; a device may not. */
  create: z.boolean(),
});
export const SubscribeDevices = defineRequest("registry.topics.subscribe", subscription, SubscriptionResult);
export const UnsubscribeDevices = defineRequest("registry.topics.unsubscribe", subscription, SubscriptionResult);

const targets = z.array(z.string()).min(1).max(1000);
const platformCounts = z.object({ ios: z.number().int(), android: z.number().int(), web: z.number().int() });

/** How many active devices targets name, exactly, each once. For a dry run: it costs what an expansion costs. */
export const CountAudience = defineRequest(
  "registry.audience.count",
  z.object({ ...project, targets }),
  z.object({ devices: platformCounts, unmatched: z.array(z.string()) }),
  () => true,
);

/** The devices of one platform that a send reaches, sorted by id. */
const ResolvedBatch = z.object({ platform: Platform, devices: z.array(Recipient) });

/**
 * Whom sends to few devices each reach, of any projects, in the order of the request. `null`: more devices than `limit`, or targets that
 * are not answered by an index.
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

/** How many active Web Push subscriptions were made with each key; those without `keyId` are from before keys had ids. */
export const CountVapidKeys = defineRequest(
  "registry.audience.count-vapid-keys",
  z.object(project),
  z.object({ subscriptions: z.array(z.object({ keyId: z.string().optional(), devices: z.number().int() })) }),
  () => true,
);

/** Whether targets name one device as it is now, and by which entry. */
export const ExplainDevice = defineRequest(
  "registry.audience.explain",
  z.object({ ...device, targets }),
  z.object({
    device: Device,
    /** The first entry of the targets that names it, as it was sent; whether or not the device is active. */
    matched: z.string().optional(),
  }),
);
