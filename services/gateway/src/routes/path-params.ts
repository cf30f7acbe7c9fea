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
export const deviceParam = { schema: DeviceId, error: "device-not-found" } as const;
export const notificationParam = { schema: NotificationId, error: "notification-not-found" } as const;
export const projectParam = { schema: ProjectId, error: "project-not-found" } as const;
export const tokenParam = { schema: TokenId, error: "token-not-found" } as const;
export const topicParam = { schema: TopicReference, error: "topic-not-found" } as const;
export const deadLetterParam = { schema: DeadLetterId, error: "dead-letter-not-found" } as const;
export const webhookParam = { schema: WebhookId, error: "webhook-not-found" } as const;
export const webhookMessageParam = { schema: WebhookMessageId, error: "webhook-message-not-found" } as const;
export const identityKeyParam = { schema: IdentityKeyId, error: "identity-key-not-found" } as const;
export const userParam = { schema: UserId, error: "user-not-found" } as const;
/** Where a user that is new may be named, a bad id is said to be bad. */
export const newUserParam = { schema: UserId, error: "validation-failed" } as const;
/** Where a name that does not exist is created, a bad one is said to be bad. */
export const newTopicParam = { schema: TopicReference, error: "validation-failed" } as const;
