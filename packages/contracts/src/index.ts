export { AppData, appDataLimits, appDataProblems, mergePatch } from "./app-data.ts";
export { messages } from "./catalogue.ts";
export {
  batchLimits,
  DeliverBatchV1,
  DrainBacklogV1,
  DueV1,
  deliveryLine,
  deliveryQueue,
  ExpandedV1,
  ExpandV1,
  GroupedSend,
  ImportChunkV1,
  OpenGroupV1,
  Recipient,
  SendGroupV1,
  SendOneV1,
  SendV1,
} from "./commands.ts";
export type { Comparison, Condition, Field, Literal } from "./condition.ts";
export { parseCondition } from "./condition.ts";
export { contractOf } from "./contract-of.ts";
export { durationMs } from "./duration.ts";
export type { DataOf, MessageContract, RequestContract } from "./envelope.ts";
export { defineMessage, defineRequest, headerNames } from "./envelope.ts";
export type { DeliveryReason, ErrorCode, LogLevel, ProviderProblemReason, Retry } from "./errors.ts";
export { deliveryReasons, errors, providerProblems } from "./errors.ts";
export type { Clause, Subject } from "./evaluate-condition.ts";
export { candidateClauses, fulfils } from "./evaluate-condition.ts";
export type { EventContract, EventData, EventName, OutboxEvent } from "./events.ts";
export {
  AuditRecordedV1,
  DeliveryAcceptedV1,
  DeliveryFailedV1,
  DeviceDeactivatedV1,
  DeviceDeletedV1,
  DeviceRegisteredV1,
  DeviceSubscribedV1,
  DeviceUnsubscribedV1,
  DeviceUpdatedV1,
  events,
  installation,
  NotificationAcceptedV1,
  NotificationCancelledV1,
  NotificationCompletedV1,
  NotificationExpiredV1,
  NotificationOpenedV1,
  ProjectDeletedV1,
  ProviderPausedV1,
  ProviderResumedV1,
  TopicCreatedV1,
  TopicDeletedV1,
  UserErasedV1,
  WebhookDisabledV1,
} from "./events.ts";
export {
  ChangeProject,
  CreateProject,
  CreateToken,
  defaultScopes,
  Project,
  ProjectToken,
  Scope,
} from "./http/v1/admin.ts";
export { AuditCheck, AuditExportQuery, AuditQuery, AuditRow, VerifyAuditQuery } from "./http/v1/audit.ts";
export {
  DeadLetter,
  DeadLetterId,
  Durable,
  Replay,
  ReplayDeadLetters,
} from "./http/v1/dead-letters.ts";
export { DeviceListQuery } from "./http/v1/device-list.ts";
export {
  ChangeDevice,
  ChangeMetadata,
  Device,
  DeviceFilter,
  DeviceStatus,
  DeviceSummary,
  deviceFilterQuery,
  Identification,
  Ignored,
  InactiveReason,
  InstallationId,
  maxCountedDevices,
  PushToken,
  RegisterDevice,
  SubscriptionKeys,
  tokenProblems,
  User,
  UserErasure,
  UserSummary,
} from "./http/v1/devices.ts";
export { EventMessage, EventsQuery, EventType, eventSubject, eventTypeOf } from "./http/v1/events.ts";
export type { ExportFormat } from "./http/v1/exports.ts";
export {
  DeviceExportQuery,
  deliveryExportQuery,
  ExportedDelivery,
  ExportedDevice,
  ExportedNotification,
  ExportedOpen,
  fromCsvText,
  notificationExportQuery,
  openExportQuery,
  toCsvText,
} from "./http/v1/exports.ts";
export {
  CreateIdentityKey,
  defaultProtectedMetadata,
  IdentityAlgorithm,
  IdentityKey,
  identityKeyLimits,
} from "./http/v1/identity.ts";
export {
  CreateImport,
  Import,
  ImportContentQuery,
  ImportError,
  ImportFormat,
  importLimits,
} from "./http/v1/imports.ts";
export { ProjectLimit } from "./http/v1/limits.ts";
export {
  batchSendLimits,
  maxScheduleDays,
  maxTtlSeconds,
  NewNotification,
  NotificationContent,
  SendNotification,
  SendNotifications,
  SentNotification,
} from "./http/v1/notification-content.ts";
export {
  Delivery,
  DeliveryAttempt,
  DeliveryStatus,
  DeliveryTrace,
  DeviceNotification,
  DryRun,
  Notification,
  NotificationCounts,
  NotificationFilter,
  NotificationStatus,
  notificationFilterQuery,
  OpenNotification,
} from "./http/v1/notifications.ts";
export {
  ChangeOperator,
  CreateOperator,
  Operator,
  OperatorRole,
  roleIncludes,
  roleOfScope,
} from "./http/v1/operators.ts";
export type { KeysetPageOf, PageOf } from "./http/v1/pagination.ts";
export {
  KeysetRequest,
  keysetPageOf,
  keysetQuery,
  ListRequest,
  listQuery,
  PageRequest,
  Pagination,
  pageOf,
  pageQuery,
  toPageRequest,
} from "./http/v1/pagination.ts";
export { Problem } from "./http/v1/problem.ts";
export { TestedPush, TestPush, testPushOf } from "./http/v1/provider-test.ts";
export {
  ApnsSettings,
  ChangeVapidKey,
  CreateVapidKey,
  FcmSettings,
  ProviderView,
  providerSettings,
  RetiredVapidKey,
  VapidKey,
  VapidKeyPair,
  WebPushKey,
  WebPushSettings,
} from "./http/v1/providers.ts";
export { DeviceProblem, PutDevice, PutDeviceResult, PutDevices, putDevicesLimits } from "./http/v1/put-devices.ts";
export {
  CreateSession,
  CurrentSession,
  OperatorReference,
  operatorHeaders,
  Session,
  SignedInOperator,
  SignInCode,
  sessionCookie,
  sessionMs,
  signInCodeMs,
} from "./http/v1/sessions.ts";
export { maxStatsGroups, OpenTotals, Stats, StatsQuery, StatsRequest, toStatsRequest } from "./http/v1/stats.ts";
export { ServiceName, ServiceStatus, StatusReport, SystemStatus } from "./http/v1/status.ts";
export {
  ChangeTopic,
  CreateTopic,
  SubscriptionResult,
  Topic,
  TopicDevices,
  TopicName,
  TopicReference,
} from "./http/v1/topics.ts";
export {
  ChangeWebhook,
  CreateWebhook,
  DisabledReason,
  Recovered,
  RecoverWebhook,
  Webhook,
  WebhookAttempt,
  WebhookMessage,
  WebhookMessageDetail,
  WebhookMessageStatus,
} from "./http/v1/webhooks.ts";
export {
  bucketCount,
  DeviceId,
  deviceBucket,
  firstDeviceId,
  firstNotificationId,
  firstTopicId,
  firstWebhookId,
  firstWebhookMessageId,
  IdentityKeyId,
  ImportId,
  idTime,
  importedDeviceId,
  maxGroupSize,
  NotificationId,
  newDeviceId,
  newIdentityKeyId,
  newImportId,
  newNotificationId,
  newNotificationIds,
  newOperatorId,
  newProjectId,
  newTokenId,
  newTopicId,
  newWebhookId,
  newWebhookMessageId,
  notificationIdsFrom,
  OperatorId,
  ProjectId,
  sendGroupOf,
  TokenId,
  TopicId,
  WebhookId,
  WebhookMessageId,
  webhookMessageId,
} from "./ids.ts";
export { isObject } from "./is-object.ts";
export { withoutDangerousLinks } from "./links.ts";
export {
  ApnsEnvironment,
  FcmTokenKind,
  Lane,
  otherProvider,
  Platform,
  Provider,
  platformOf,
  providerOf,
  providersOf,
  type Served,
  servingProvider,
  WebPushKeys,
} from "./platforms.ts";
export {
  IdempotencyRecord,
  OperatorRecord,
  ProjectRecord,
  ProvidersRecord,
  projectProvidersKey,
  projectSettingsKey,
  ReplayRecord,
  SessionRecord,
  sessionKey,
  signInCodeKey,
  TokenRecord,
  tokenKey,
} from "./records.ts";
export type { Reply } from "./reply.ts";
export { ReplyError } from "./reply.ts";
export { CountOpens, GetStats, OpensOfDevices, OpensOfNotifications } from "./requests/analytics.ts";
export type { ListAuditRequest } from "./requests/audit.ts";
export { ListAudit, VerifyAudit } from "./requests/audit.ts";
export {
  CancelNotification,
  CountBacklog,
  DeleteProvider,
  GetDeliveryTrace,
  GetNotification,
  GetProvider,
  JudgeReplay,
  ListDeliveries,
  ListDeviceNotifications,
  ListNotifications,
  ListVapidKeys,
  PromoteVapidKey,
  PutProvider,
  RetireVapidKey,
  StageVapidKey,
  TestProvider,
} from "./requests/dispatch.ts";
export {
  ExportDeliveries,
  ExportDevices,
  ExportNotifications,
  ExportOpens,
  maxExportRows,
} from "./requests/exports.ts";
export { CreateImportRequest, GetImport, ListImportErrors, ListImports } from "./requests/imports.ts";
export {
  ChangeOperatorRequest,
  CreateOperatorRequest,
  DeleteOperator,
  GetOperator,
  ListOperators,
  RotateOperatorToken,
} from "./requests/operators.ts";
export {
  AuthenticateDevice,
  ChangeDeviceRequest,
  ChangeMetadataByToken,
  ChangeProjectRequest,
  ChangeTopicRequest,
  CountAudience,
  CountVapidKeys,
  CreateProjectRequest,
  CreateTokenRequest,
  CreateTopicRequest,
  DeleteDevice,
  DeleteProject,
  DeleteTopic,
  ExplainDevice,
  GetDevice,
  GetDeviceQuota,
  GetProject,
  GetTopic,
  IdentifyDevice,
  ListDevices,
  ListProjects,
  ListTokens,
  ListTopics,
  PutDevicesRequest,
  RegisterDeviceRequest,
  ResolveSends,
  RevokeToken,
  SubscribeDevices,
  UnsubscribeDevices,
} from "./requests/registry.ts";
export {
  CheckRecipients,
  CreateIdentityKeyRequest,
  DeleteIdentityKey,
  EraseUser,
  GetUser,
  ListIdentityKeys,
  ListUsers,
  UsersOfDeliveries,
} from "./requests/users.ts";
export {
  ChangeWebhookRequest,
  CreateWebhookRequest,
  DeleteWebhook,
  GetWebhook,
  GetWebhookMessage,
  ListWebhookMessages,
  ListWebhooks,
  PingWebhook,
  RecoverWebhookRequest,
  ResendWebhookMessage,
  RotateWebhookSecret,
} from "./requests/webhooks.ts";
export {
  isOperatorToken,
  isProjectToken,
  isSessionSecret,
  isSignInCode,
  newDeviceCredential,
  newIdentitySecret,
  newOperatorToken,
  newProjectToken,
  newSessionSecret,
  newSignInCode,
  parseDeviceCredential,
  pushTokenHash,
  secretHash,
} from "./secrets.ts";
export type { BucketName, DurableName, StreamName } from "./streams.ts";
export { buckets, deliveryGuard, durables, streams } from "./streams.ts";
export type { Tag } from "./tags.ts";
export { fromTags, kindTag, labelFilterTag, toTags } from "./tags.ts";
export type { Target } from "./targets.ts";
export { isPersonal, laneOf, maxIndexedBytes, parseTarget, usersOf } from "./targets.ts";
export { erasedTarget, erasedUser, UserId, UserToken, userKey } from "./users.ts";
export { VapidKeyId, VapidKeyStatus, VapidPublicKey, vapidKeyId } from "./vapid.ts";
