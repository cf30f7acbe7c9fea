import {
  DeadLetterId,
  DeviceId,
  IdentityKeyId,
  NotificationId,
  ProjectId,
  TokenId,
  TopicReference,
  UserId,
  WebhookId,
  WebhookMessageId,
} from "@herald/contracts";

/** Parameters of paths. An id that cannot exist is answered as one that does not. */
export const deviceParam = { schema: DeviceId, otherwise: "device-not-found" } as const;
export const notificationParam = { schema: NotificationId, otherwise: "notification-not-found" } as const;
export const projectParam = { schema: ProjectId, otherwise: "project-not-found" } as const;
export const tokenParam = { schema: TokenId, otherwise: "token-not-found" } as const;
export const topicParam = { schema: TopicReference, otherwise: "topic-not-found" } as const;
export const deadLetterParam = { schema: DeadLetterId, otherwise: "dead-letter-not-found" } as const;
export const webhookParam = { schema: WebhookId, otherwise: "webhook-not-found" } as const;
export const webhookMessageParam = { schema: WebhookMessageId, otherwise: "webhook-message-not-found" } as const;
export const identityKeyParam = { schema: IdentityKeyId, otherwise: "identity-key-not-found" } as const;
export const userParam = { schema: UserId, otherwise: "user-not-found" } as const;
/** Where a user that is new may be named, a bad id is said to be bad. */
export const newUserParam = { schema: UserId, otherwise: "validation-failed" } as const;
/** Where a name that does not exist is created, a bad one is said to be bad. */
export const newTopicParam = { schema: TopicReference, otherwise: "validation-failed" } as const;
