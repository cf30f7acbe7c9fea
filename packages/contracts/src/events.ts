import { z } from "zod";
import { type DataOf, defineMessage, type MessageContract } from "./envelope.ts";
import { Approval } from "./http/v1/approval.ts";
import { BadTokenReason, InactiveReason } from "./http/v1/devices.ts";
import { AuditedOperator } from "./http/v1/sessions.ts";
import { Author } from "./http/v1/templates.ts";
import { DeviceId, isDeviceId, NotificationId, ProjectId, TopicId, WebhookId } from "./ids.ts";
import { isObject, plainBatch } from "./plain-batch.ts";
import { Platform, Provider } from "./platforms.ts";
import { eventTagFields } from "./tags.ts";
import { TemplateName, TemplateVersion } from "./template-version.ts";
import { UserId } from "./users.ts";

/** An event on `PUSH_EVENTS`, as CloudEvents 1.0 in binary mode: the schema describes its data; the attributes are headers. */
export type EventContract<Schema extends z.ZodType = z.ZodType> = MessageContract<Schema> & {
  /** CloudEvents type, such as `io.herald.notification.opened.v1`. */
  readonly ceType: string;
};

/**
 * Declares an event by its fields. Derives subject and type from the name: `DeviceRegisteredV1` is about a `device`, and its verb is
 * `registered`.
 */
const defineEvent = <Fields extends { project_id: z.ZodType<string> }>(
  name: string,
  fields: Fields,
  isPlainDevice?: (device: unknown) => boolean,
): EventContract<z.ZodObject<Fields>> => {
  const schema = z.object(fields);
  const [, entity = "", verb = ""] = /^([A-Z][a-z]+)([A-Z][a-z]+)V1$/.exec(name) ?? [];
  const kind = `${entity}.${verb}`.toLowerCase();
  const isPlain = isPlainDevice && plainBatch(schema, isPlainDevice);
  const message = defineMessage(name, `push.evt.v1.:project_id.${kind}`, schema as never, isPlain as never);
  return { ...(message as unknown as MessageContract<typeof schema>), ceType: `io.herald.${kind}.v1` };
};

const time = z.iso.datetime();
const device = { project_id: ProjectId, device_id: DeviceId };
const hash = z
  .string()
  .regex(/^[0-9a-f]{64}$/)
  .meta({
    description: "SHA-256 in hex",
    examples: ["5e884898da28047151d0e56f8dc6292773603d0d6aabbd62a11ef721d1542d8" + "8"],
  });

export const DeviceRegisteredV1 = defineEvent("DeviceRegisteredV1", {
  ...device,
  platform: Platform,
  token_hash: hash,
  at: time,
});
export const DeviceUpdatedV1 = defineEvent("DeviceUpdatedV1", {
  ...device,
  changed: z.array(z.string()).meta({ description: "Names of the fields that changed", examples: [["metadata"]] }),
  at: time,
});
export const DeviceDeactivatedV1 = defineEvent("DeviceDeactivatedV1", { ...device, reason: InactiveReason, at: time });
export const DeviceDeletedV1 = defineEvent("DeviceDeletedV1", { ...device, at: time });

const subscription = { ...device, topic_id: TopicId, topic: z.string(), at: time };
export const DeviceSubscribedV1 = defineEvent("DeviceSubscribedV1", subscription);
export const DeviceUnsubscribedV1 = defineEvent("DeviceUnsubscribedV1", subscription);

const topic = { project_id: ProjectId, topic_id: TopicId, topic: z.string(), at: time };
export const TopicCreatedV1 = defineEvent("TopicCreatedV1", topic);
export const TopicDeletedV1 = defineEvent("TopicDeletedV1", topic);

const notification = { project_id: ProjectId, notification_id: NotificationId, ...eventTagFields, at: time };
const count = z.number().int().min(0);
const totals = z
  .object({
    devices: count,
    accepted: count,
    failed: count,
    expired: count,
    cancelled: count,
    skipped: count.optional(),
  })
  .meta({
    description: "`devices` is the sum of the others; `skipped` absent: none",
    examples: [{ devices: 120, accepted: 117, failed: 2, expired: 0, cancelled: 0, skipped: 1 }],
  });
const byReason = (description: string, example: Record<string, number>) =>
  z.record(z.string(), count).meta({ description, examples: [example] });
const skips = byReason("Skipped devices by reason; absent: none", { moved: 1 }).optional();
export const NotificationAcceptedV1 = defineEvent("NotificationAcceptedV1", {
  ...notification,
  send_at: time.optional(),
  topics: z
    .array(z.string())
    .optional()
    .meta({ description: "Topics among its targets; absent: none", examples: [["news"]] }),
  users: z
    .array(z.string())
    .optional()
    .meta({ description: "Users among its targets; absent: none", examples: [["u_8412"]] }),
  template: TemplateVersion.optional().meta({ description: "The template that it was rendered from; absent: none" }),
});
/** Its time or its time to live was changed before it was sent. */
export const NotificationChangedV1 = defineEvent("NotificationChangedV1", {
  ...notification,
  send_at: time.meta({ description: "When it is sent now; in waves: the first one" }),
  time_zone: z
    .string()
    .optional()
    .meta({
      description: "Whose local time it is sent at: a time zone, or `device`; absent: an instant",
      examples: ["device"],
    }),
});
const detail = z
  .string()
  .optional()
  .meta({ description: "Why, for people", examples: ["the link leads to yesterday's sale"] });
/** Nothing of it is sent until it is resumed. Its time to live runs on. */
export const NotificationPausedV1 = defineEvent("NotificationPausedV1", {
  ...notification,
  reason: z
    .enum(["requested", "failures"])
    .meta({ description: "`requested`: an operator or a backend paused it. `failures`: too many devices failed" }),
  detail,
  by: Author.optional().meta({ description: "Absent: its rollout stopped by itself" }),
});
export const NotificationResumedV1 = defineEvent("NotificationResumedV1", { ...notification, by: Author });
/** It waits for an operator's approval. */
export const NotificationProposedV1 = defineEvent("NotificationProposedV1", {
  ...notification,
  devices: Approval.shape.devices,
  limit: Approval.shape.limit,
  by: Author.meta({ description: "Who sent it" }),
});
/** It is sent now, or at its time. */
export const NotificationApprovedV1 = defineEvent("NotificationApprovedV1", { ...notification, detail, by: Author });
/** It is not sent; `notification.cancelled` follows. */
export const NotificationRejectedV1 = defineEvent("NotificationRejectedV1", {
  ...notification,
  reason: z.enum(["requested", "expired"]).meta({ description: "`expired`: nobody decided in time" }),
  detail,
  by: Author.optional().meta({ description: "Absent: nobody decided in time" }),
});
export const NotificationCompletedV1 = defineEvent("NotificationCompletedV1", {
  ...notification,
  counts: totals,
  failures: byReason("Failed devices by reason", { unregistered: 2 }),
  skips,
});
const ended = { ...notification, counts: totals, skips };
export const NotificationCancelledV1 = defineEvent("NotificationCancelledV1", ended);
export const NotificationExpiredV1 = defineEvent("NotificationExpiredV1", ended);

/** Published once for each device and notification, however often the app reports the open. */
export const NotificationOpenedV1 = defineEvent("NotificationOpenedV1", {
  project_id: ProjectId,
  notification_id: NotificationId,
  device_id: DeviceId,
  platform: Platform.optional().meta({
    description: "Absent when the open token is of an earlier version, without a platform",
  }),
  user_id: z
    .string()
    .optional()
    .meta({ description: "The user that the device belonged to when the push was sent; absent: none" }),
  button: z
    .string()
    .optional()
    .meta({ description: "The button that was pressed; absent: none", examples: ["track"] }),
  ...eventTagFields,
  at: time,
});

/** Published once for each user, and for each device without one, who had not opened the notification when the time of `escalate_after` came. */
export const NotificationUnopenedV1 = defineEvent("NotificationUnopenedV1", {
  ...notification,
  user_id: z.string().optional().meta({ description: "Absent: a device has not opened it" }),
  device_id: DeviceId.optional().meta({ description: "A device without a user, or a target that was not active" }),
  reason: z.enum(["unopened", "not-delivered", "no-active-device"]).meta({
    description:
      "`unopened`: a provider accepted it. `not-delivered`: no provider has accepted it. `no-active-device`: there was none to send to",
  }),
});

const usersOfDevices = z
  .array(z.string().nullable())
  .optional()
  .meta({
    description: "The user of each of `devices`, in the same order; null: none; absent: none of them has one",
    examples: [["u_8412"]],
  });
const reportedByDevices = {
  ...notification,
  platform: Platform,
  devices: z.array(DeviceId),
  users: usersOfDevices,
};
/** Devices whose app ran with the push, not that a person saw it. Each device and notification is in one such event. */
export const NotificationReceivedV1 = defineEvent("NotificationReceivedV1", reportedByDevices, isDeviceId);
/** Devices whose user dismissed the notification; on iOS explicitly. Each device and notification is in one such event. */
export const NotificationDismissedV1 = defineEvent("NotificationDismissedV1", reportedByDevices, isDeviceId);

const batch = { ...notification, batch_id: z.string(), platform: Platform };
const accepted = {
  ...batch,
  devices: z.array(DeviceId),
  users: usersOfDevices,
  asked: count.optional().meta({ description: "How many of `devices` were asked for a receipt; absent: none" }),
};
/** Devices of one batch that the provider accepted. */
export const DeliveryAcceptedV1 = defineEvent("DeliveryAcceptedV1", accepted, isDeviceId);
/** Devices of one batch that failed, expired, were cancelled or skipped. Registry deactivates the `unregistered` ones: their tokens are dead, or wrong for ever. */
export const DeliveryFailedV1 = defineEvent("DeliveryFailedV1", {
  ...batch,
  failures: z.array(
    z.object({
      device_id: DeviceId,
      user_id: z.string().optional().meta({ description: "The user of the device; absent: none" }),
      status: z.enum(["failed", "expired", "cancelled", "skipped"]),
      reason: z.string().meta({ description: "A delivery reason (/docs/errors#reasons)" }),
      provider_reason: z.string().optional(),
    }),
  ),
  unregistered: z.array(
    z.object({
      device_id: DeviceId,
      token_hash: hash,
      /** When the provider refused the token, or else when the attempt began: only an older registration is deactivated. */
      at: time,
      reason: BadTokenReason.optional().meta({ description: "Absent when its provider calls the token unregistered" }),
    }),
  ),
});

/** Devices of one batch that get the push later: `until` then. Each device and notification is in one such event at most. */
export const DeliveryDelayedV1 = defineEvent(
  "DeliveryDelayedV1",
  {
    ...batch,
    devices: z.array(DeviceId),
    users: usersOfDevices,
    until: time.meta({
      description: "When they get it, unless its kind is switched off or its cap is reached by then",
    }),
    reason: z.string().meta({ description: "A delivery reason (/docs/errors#reasons)", examples: ["quiet-hours"] }),
  },
  isDeviceId,
);

export const TemplatePublishedV1 = defineEvent("TemplatePublishedV1", {
  project_id: ProjectId,
  template: TemplateName,
  version: TemplateVersion.shape.version,
  author: Author,
  at: time,
});

const provider = { project_id: ProjectId, provider: Provider, at: time };
export const ProviderPausedV1 = defineEvent("ProviderPausedV1", {
  ...provider,
  reason: z.string(),
  provider_reason: z.string().meta({ description: "The provider's code, and its own words if it gave any" }),
  detail: z.string().optional().meta({ description: "What to check" }),
});
export const ProviderResumedV1 = defineEvent("ProviderResumedV1", {
  ...provider,
  reason: z
    .enum(["new-settings", "accepted-again"])
    .meta({ description: "`accepted-again`: the provider accepted a waiting push that Herald tried. More may come" }),
});

/** Herald disabled a webhook because it failed for five days or answered 410 twice in a row. `PATCH` enables it again. */
export const WebhookDisabledV1 = defineEvent("WebhookDisabledV1", {
  project_id: ProjectId,
  webhook_id: WebhookId,
  reason: z.enum(["failing", "gone"]),
  failing_since: time.optional(),
  at: time,
});

/** A user was erased: delete what you store about them. Each of their devices has a deletion event too. */
export const UserErasedV1 = defineEvent("UserErasedV1", { project_id: ProjectId, user_id: UserId, at: time });

/** Replaces the project id in events of the installation: no project's webhook or stream gets them. */
export const installation = "installation";

const AuditedState = z.record(z.string(), z.unknown()).nullable();

/** An operator changes something, or sends. Published before the change, so every change has an event. */
export const AuditRecordedV1 = defineEvent("AuditRecordedV1", {
  project_id: z.literal(installation).meta({ description: "Always this: only consumers of the installation get it" }),
  operator: AuditedOperator,
  action: z.string().meta({ description: "The route's operationId", examples: ["changeProject"] }),
  target_project_id: ProjectId.optional().meta({ description: "The project that it is about; absent: none" }),
  target: z.string().meta({
    description: "The path, without user ids",
    examples: ["/admin/v1/projects/prj_06bq4ghm31tz5d2ns8y7k9w0ac"],
  }),
  address: z.string().meta({ description: "The operator's address", examples: ["203.0.113.7"] }),
  request_id: z
    .string()
    .optional()
    .meta({ examples: ["0198f1c2-7d1e-7cc4-8d5e-2f9f0a4b6c11"] }),
  before: AuditedState.optional().meta({
    description: "What was there, without secrets; absent where nothing can be read",
    examples: [{ name: "Shop" }],
  }),
  after: AuditedState.optional().meta({
    description: "The fields that the request sets, secrets masked; null: it deletes",
    examples: [{ name: "Store" }],
  }),
  at: time,
});

/** Nothing of the project is sent until it is resumed. A pause of all projects has no such event. */
export const ProjectPausedV1 = defineEvent("ProjectPausedV1", {
  project_id: ProjectId,
  reason: z.enum(["requested"]).meta({ description: "`requested`: an operator paused it" }),
  detail,
  by: Author,
  until: time.optional().meta({ description: "When it resumes by itself; absent: when somebody resumes it" }),
  at: time,
});
export const ProjectResumedV1 = defineEvent("ProjectResumedV1", {
  project_id: ProjectId,
  reason: z.enum(["requested", "until"]).meta({ description: "`until`: its end had come" }),
  by: Author.optional().meta({ description: "Absent: its end had come" }),
  at: time,
});

export const ProjectDeletedV1 = defineEvent("ProjectDeletedV1", { project_id: ProjectId, at: time });

/** Every event, by the name that outboxes store. */
export const events = {
  DeviceRegisteredV1,
  DeviceUpdatedV1,
  DeviceDeactivatedV1,
  DeviceDeletedV1,
  DeviceSubscribedV1,
  DeviceUnsubscribedV1,
  TopicCreatedV1,
  TopicDeletedV1,
  NotificationAcceptedV1,
  NotificationChangedV1,
  NotificationPausedV1,
  NotificationResumedV1,
  NotificationProposedV1,
  NotificationApprovedV1,
  NotificationRejectedV1,
  NotificationCompletedV1,
  NotificationCancelledV1,
  NotificationExpiredV1,
  NotificationOpenedV1,
  NotificationReceivedV1,
  NotificationDismissedV1,
  NotificationUnopenedV1,
  DeliveryAcceptedV1,
  DeliveryFailedV1,
  DeliveryDelayedV1,
  TemplatePublishedV1,
  ProviderPausedV1,
  ProviderResumedV1,
  WebhookDisabledV1,
  UserErasedV1,
  AuditRecordedV1,
  ProjectPausedV1,
  ProjectResumedV1,
  ProjectDeletedV1,
} as const;

const anyData = z.record(z.string(), z.unknown());

/** Events of any type with all their fields, also of types that this version does not know. For consumers: each event is published by its own contract. */
export const anyEvent: MessageContract<typeof anyData> = {
  name: "AnyEvent",
  pattern: "push.evt.v1.:project_id.:entity.:verb",
  filter: "push.evt.v1.*.*.*",
  schema: anyData,
  isPlain: isObject,
  subject: () => {
    throw new TypeError("events are published by their own contracts");
  },
};

export type EventName = keyof typeof events;
export type EventData<Name extends EventName> = DataOf<(typeof events)[Name]>;

/** An event in a document's outbox, where it waits until it is published. */
export type OutboxEvent<Name extends EventName = EventName> = {
  /** `ce-id`: the same each time the event is published. */
  readonly id: string;
  readonly event: Name;
  /** `ce-subject`: the id of the event's entity. */
  readonly subject: string;
  readonly at: Date;
  readonly data: EventData<Name>;
};
