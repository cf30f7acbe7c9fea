import {
  ActivityId,
  DeadLetterId,
  DeviceId,
  IdentityKeyId,
  Kind,
  NotificationId,
  OperatorId,
  ProjectId,
  PushName,
  TemplateName,
  TokenId,
  TokenType,
  TopicReference,
  UserId,
  WebhookId,
  WebhookMessageId,
} from "@herald/contracts";

/** Path parameters. A malformed id is a 404, like an unknown one. */
export const deviceParam = { schema: DeviceId, error: "device-not-found" } as const;
export const notificationParam = { schema: NotificationId, error: "notification-not-found" } as const;
export const projectParam = { schema: ProjectId, error: "project-not-found" } as const;
export const tokenParam = { schema: TokenId, error: "token-not-found" } as const;
export const topicParam = { schema: TopicReference, error: "topic-not-found" } as const;
export const templateParam = { schema: TemplateName, error: "template-not-found" } as const;
export const kindParam = { schema: Kind, error: "kind-not-found" } as const;
export const deadLetterParam = { schema: DeadLetterId, error: "dead-letter-not-found" } as const;
export const webhookParam = { schema: WebhookId, error: "webhook-not-found" } as const;
export const webhookMessageParam = { schema: WebhookMessageId, error: "webhook-message-not-found" } as const;
export const identityKeyParam = { schema: IdentityKeyId, error: "identity-key-not-found" } as const;
export const operatorParam = { schema: OperatorId, error: "operator-not-found" } as const;
export const userParam = { schema: UserId, error: "user-not-found" } as const;
export const activityParam = { schema: ActivityId, error: "activity-not-found" } as const;
/** For the route that creates it: a malformed id is a validation error. */
export const newActivityParam = { schema: ActivityId, error: "validation-failed" } as const;
export const pushTypeParam = { schema: TokenType, error: "validation-failed" } as const;
export const pushNameParam = { schema: PushName, error: "validation-failed" } as const;
/** For routes that create the user: a malformed id is a validation error. */
export const newUserParam = { schema: UserId, error: "validation-failed" } as const;
/** For routes that create the topic: a malformed name is a validation error. */
export const newTopicParam = { schema: TopicReference, error: "validation-failed" } as const;
/** For the route that declares the kind: a malformed name is a validation error. */
export const newKindParam = { schema: Kind, error: "validation-failed" } as const;
