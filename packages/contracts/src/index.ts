// biome-ignore-all format: the names of one file are on as few lines as they fit on
export { type ActivityChannelRecord, type ActivityKey, ActivityRecord, activeActivityKey, activityKey } from "./activities.ts";
export {
  ActivityAlert, ActivityAttributes, ActivityEvent, ActivityId, ActivityPush, ActivityReference, ContentState,
} from "./activity-push.ts";
export { AppData, appDataProblems } from "./app-data.ts";
export { AskedRules } from "./asked-rules.ts";
export {
  type Capabilities, type Capability, CapabilityList, capabilitiesFrom, capabilityList, hasCapability, knownCapabilities,
} from "./capabilities.ts";
export { contractOf, messages } from "./catalogue.ts";
export {
  audienceOfContent, DrainBacklogV1, DueV1, ExpandedV1, ExpandV1, GroupedSend, ImportChunkV1, JoinActivityV1, 
  lifeMsOf, PlaceInChunk,pagesOfExpansion, readGroup, SendGroupV1, SendOneV1, SendV1, targetsOfSend, ttlMsOf,
} from "./commands.ts";
export {
  type Compare, type Condition, type ConditionField, clausesOf, type DeviceTime, holdsVersions, type Literal, type Order,
  parseCondition, type TimeComparison,
} from "./condition.ts";
export { cutText } from "./cut-text.ts";
export { batchLimits, DeliverBatchV1, deliveryLine, deliveryQueue, Recipient } from "./deliver-batch.ts";
export { DevicePaths, deviceValueLimits, isDevicePath } from "./device-values.ts";
export { parseDuration } from "./duration.ts";
export {
  type DataOf, defineMessage, defineRequest, eventSubject, eventTypeOf, headerNames, type MessageContract, preEncoded, type Reply, ReplyError, type RequestContract,
} from "./envelope.ts";
export {
  adviceOn, type DeliveryReason, deliveryReasons, type ErrorCode, errors, type ProviderProblemReason, providerProblems, type Retry,
} from "./errors.ts";
export { BatchedEvent, batchedTypes, eventBatchType } from "./event-batch.ts";
export {
  AuditRecordedV1, anyEvent, DeliveryAcceptedV1, DeliveryDelayedV1, DeliveryFailedV1, DeviceDeactivatedV1, DeviceDeletedV1,
  DeviceRegisteredV1, DeviceSubscribedV1, DeviceUnsubscribedV1, DeviceUpdatedV1, type EventContract, type EventData, type EventName,
  events, installation, NotificationAcceptedV1, NotificationApprovedV1, NotificationCancelledV1, NotificationChangedV1, NotificationCompletedV1,
  NotificationDismissedV1, NotificationExpiredV1, NotificationOpenedV1, NotificationPausedV1, NotificationProposedV1, NotificationReceivedV1,NotificationRejectedV1, 
  NotificationResumedV1, NotificationUnopenedV1, type OutboxEvent, ProjectDeletedV1, ProjectPausedV1, ProjectResumedV1, ProviderPausedV1, ProviderResumedV1,
  TemplatePublishedV1, TopicCreatedV1, TopicDeletedV1, UserErasedV1, WebhookDisabledV1,
} from "./events.ts";
export {
  Activity, ActivityStatus, ActivityVersion, activityLimits, DeviceActivity, EndActivity, type NewActivity, PatchActivity, PutActivity,
} from "./http/v1/activities.ts";
export {
  ChangeProject, CreateProject, CreateToken, defaultScopes, Name, Project, ProjectKey, ProjectToken, Scope, SetProjectKey,
} from "./http/v1/admin.ts";
export { Approval, ApprovalRule, DecideNotification, maxProposedMs, Proposal } from "./http/v1/approval.ts";
export { AuditCheck, AuditExportQuery, AuditQuery, AuditRow, VerifyAuditQuery } from "./http/v1/audit.ts";
export { ChangeNotification } from "./http/v1/change-notification.ts";
export { DeadLetter, DeadLetterId, DeadLetterListQuery, Durable, Replay, ReplayDeadLetters } from "./http/v1/dead-letters.ts";
export { Delivery, DeliveryAttempt, DeliveryStatus, DeliveryTrace, DeviceNotification } from "./http/v1/deliveries.ts";
export { ChangeDevice, ChangeMetadata, Identification, Ignored, PutFurtherToken, RegisterDevice } from "./http/v1/device-bodies.ts";
export { InstallationId, PushToken, SubscriptionKeys, tokenProblems } from "./http/v1/device-fields.ts";
export { BadTokenReason, Device, DeviceFilter, DeviceStatus, DeviceSummary, FurtherToken, InactiveReason } from "./http/v1/devices.ts";
export { DryRun, PlannedDelay } from "./http/v1/dry-run.ts";
export { escalationProblems } from "./http/v1/escalation.ts";
export { EventMessage, EventsQuery, EventType } from "./http/v1/events.ts";
export {DeliveryExportQuery, 
  DeviceExportQuery, ExportedDelivery, ExportedDevice, ExportedNotification, ExportedOpen, ExportedReceipt,
  ExportFormat, fromCsvText, NotificationExportQuery, OpenExportQuery, ReceiptExportQuery, toCsvText,
} from "./http/v1/exports.ts";
export {
  CreateIdentityKey, defaultProtectedMetadata, IdentityAlgorithm, IdentityKey, identityKeyLimits, ProtectedMetadata,
} from "./http/v1/identity.ts";
export {
  CreateImport, Import, ImportContentQuery, ImportFormat, importLimits, RenamedField, UnusedField, unsupportedPlatform,
} from "./http/v1/imports.ts";
export { CapWindow, DeclaredKind, FrequencyCap, kindLimits, PutKind } from "./http/v1/kinds.ts";
export { ChangeLimits, LimitName, OwnLimits, ProjectLimit } from "./http/v1/limits.ts";
export { LineError, lineLimits } from "./http/v1/lines.ts";
export {
  hasOffset, knownZone, LocalTime, ofDevice, Past, PlannedWave, type TimeOfSend, TimeZone, Ttl, timeProblems, Wave,
  WaveStatus,
} from "./http/v1/local-time.ts";
export { type NewRecipient, NewRecipients, parseRecipient, RecipientsOrUpload } from "./http/v1/new-recipients.ts";
export { Locale, NotificationContent, RecipientList, words } from "./http/v1/notification-content.ts";
export { notificationLimits } from "./http/v1/notification-limits.ts";
export {
  Notification, NotificationCounts, NotificationFilter, NotificationOpens, NotificationStatus,
} from "./http/v1/notifications.ts";
export {
  ChangeOperator, CreateOperator, maxGrants, Operator, OperatorRole, ProjectGrant, ProjectRole, roleIncludes, roleOfScope,
} from "./http/v1/operators.ts";
export {
  Instant, type KeysetPageOf, KeysetRequest, keysetPageOf, ListRequest, listQuery, type PageOf, PageRequest, Pagination, pageOf,
} from "./http/v1/pagination.ts";
export { Installation, Pause, PauseNotification, PauseSends, ProjectPause, StoredPause } from "./http/v1/pause.ts";
export { KindPreference, Preferences, PutDevicePreferences, PutUserPreferences } from "./http/v1/preferences.ts";
export { Urgency } from "./http/v1/presentation-fields.ts";
export { FieldProblem, Problem } from "./http/v1/problem.ts";
export { TestedPush, TestPush, testPushOf } from "./http/v1/provider-test.ts";
export {
  ApnsSettings, ChangeVapidKey, CreateVapidKey, FcmSettings, ProviderProblem, ProviderView, providerSettings, RetiredVapidKey, VapidKey,
  VapidKeyPair, WebPushKey, WebPushSettings,
} from "./http/v1/providers.ts";
export { EntryProblem, PutDevice, PutDeviceResult, PutDevices, putDevicesLimits } from "./http/v1/put-devices.ts";
export { OwnQuietHours, QuietHours } from "./http/v1/quiet-hours.ts";
export { ButtonId, ButtonTitles, ReceiptShare } from "./http/v1/receipt-fields.ts";
export { Recipients, RecipientsQuery } from "./http/v1/recipients.ts";
export { OpenNotification, ReportNotification } from "./http/v1/reports.ts";
export {
  canaryBuckets, canaryWaitMs, HeldReason, maxCanaryWaitMs, maxRolloutMs, minPerMinute, PlannedRollout, Rollout, RolloutPhase, type RolloutState, rolloutProblems,
} from "./http/v1/rollout.ts";
export {
  batchSendLimits, hasLiquid, isTemplated, NewNotification, RenderedContent, SendNotification, SendNotifications, SendPushTypeField,
  SentNotification, targetFields, templateFields,
} from "./http/v1/send-notification.ts";
export {
  AuditedOperator, AuditedReference, CreateSession, CurrentSession, maxSessions, OperatorReference, operatorHeaders, ReturnTo, Session,
  SignedInOperator, SignedOut, SignInCode, SignInQuery, SignInWays, sessionCookieName, sessionMs, signInCodeMs, signInCookieName,
} from "./http/v1/sessions.ts";
export { maxStatsGroups, maxStatsIntervals, OpenTotals, Stats, StatsQuery, StatsRequest, statsIntervalMs } from "./http/v1/stats.ts";
export { ServiceName, ServiceStatus, StatusReport, SystemStatus } from "./http/v1/status.ts";
export {
  Author, PreviewTemplate, PublishedVersion, PutTemplate, Template, TemplateContent, TemplatePreview, TemplateQuery,
  TemplateSummary, templateLimits,
} from "./http/v1/templates.ts";
export { ChangeTopic, CreateTopic, SubscriptionResult, Topic, TopicDevices, TopicName, TopicReference } from "./http/v1/topics.ts";
export { maxCountedDevices, User, UserErasure, UserSummary } from "./http/v1/users.ts";
export {
  ChangeWebhook, CreateWebhook, DisabledReason, Recovered, RecoverWebhook, Webhook, WebhookAttempt, WebhookMessage, WebhookMessageDetail,
  WebhookMessageStatus,
} from "./http/v1/webhooks.ts";
export {
  bucketCount, bucketOf, DeviceId, derivedNotificationId, firstDeviceId, firstNotificationId, firstTopicId, firstWebhookId,
  firstWebhookMessageId, IdentityKeyId, ImportId, idTime, importedDeviceId, maxGroupSize, NotificationId, newDeviceId, newIdentityKeyId,
  newImportId, newNotificationId, newNotificationIds, newOperatorId, newProjectId, newTokenId, newTopicId, newWebhookId,
  newWebhookMessageId, notificationIdsFrom, OperatorId, ProjectId, sendGroupOf, TokenId, TopicId, WebhookId, WebhookMessageId,
  webhookMessageId,
} from "./ids.ts";
export { createLastUsed } from "./last-used.ts";
export { linkProblem, withoutDangerousLinks } from "./links.ts";
export {
  type LiquidChain, type LiquidExpression, type LiquidFilter, type LiquidFilterName, type LiquidNode, type LiquidOperator,
  type LiquidProgram, liquidFilters, liquidLimits,
} from "./liquid-program.ts";
export { type LocaleMeaning, languageIn, languagesOf, maxLocaleLength, parentRegion, readLocale } from "./locale.ts";
export { isObject } from "./plain-batch.ts";
export {
  ApnsEnvironment, AppId, canonicalToken, FcmTokenKind, Lane, otherProvider, Platform, Provider, platformOf, providerOf, providersOf,
  type Served, servingProvider, WebPushKeys,
} from "./platforms.ts";
export {
  fromPushKey, furtherTokenKey, isActivityPushKey, isNowOrNever, maxFurtherTokens, PushKey, PushName, PushType, pushKeyOf,
  pushNameProblem, SendPushType, TokenType, topicEndings,
} from "./push-types.ts";
export {
  PersonalTexts, RecipientKeys, RecipientKind, RecipientLine, RecipientLines, readRecipientKeys, readRecipientLines, recipientLimits, targetOfRecipient,
} from "./recipients.ts";
export {
  IdempotencyRecord, OperatorRecord, ProjectRecord, ProvidersRecord, projectProvidersKey, projectRulesKey, projectSettingsKey,
  ReplayRecord, RulesRecord, SessionRecord, secretHash, sessionKey, signInCodeKey, TemplateRecord, TokenRecord, templateKey, tokenKey,
} from "./records.ts";
export { OpenGroupV1, ReceiptGroupV1, ReceiptKind } from "./report-groups.ts";
export {
  openRequests, receiptRequests, statsRequests, webhookMessageRequests, webhookRequests,
} from "./requests/analytics.ts";
export { audienceRequests, CountedRules } from "./requests/audience.ts";
export { deviceRequests } from "./requests/devices.ts";
export {
  activityRequests, backlogRequests, deliveryRequests, erasureRequests, notificationRequests, providerRequests, replayRequests, vapidKeyRequests,
} from "./requests/dispatch.ts";
export { importRequests } from "./requests/imports.ts";
export { kindRequests } from "./requests/kinds.ts";
export { auditRequests, type ListAuditRequest, operatorRequests } from "./requests/operators.ts";
export { preferenceRequests } from "./requests/preferences.ts";
export { projectRequests, tokenRequests } from "./requests/projects.ts";
export { type AppendRecipients, recipientRequests } from "./requests/recipients.ts";
export { templateRequests } from "./requests/templates.ts";
export { topicRequests } from "./requests/topics.ts";
export { identityKeyRequests, userRequests } from "./requests/users.ts";
export {
  identityHash, isOperatorToken, isProjectToken, isSessionSecret, isSignInCode, newDeviceCredential, newIdentitySecret, newOperatorToken,
  newProjectToken, newSessionSecret, newSignInCode, parseDeviceCredential, pushTokenHash, SecretHash, settingsFingerprint,
  tokenFingerprint,
} from "./secrets.ts";
export {
  type BucketName, buckets, type DurableName, deliveryGuard, duplicateWindowMs, durables, type StreamName, streams,
} from "./streams.ts";
export { Kind, LabelFilter, Labels, splitLabel, type Tag } from "./tags.ts";
export { kindOfTarget, maxIndexedBytes, parseTarget, type Target } from "./targets.ts";
export { TemplateName, TemplateVersion } from "./template-version.ts";
export { canonicalZone, isTimeZone } from "./time-zone.ts";
export { maxTtlSeconds, nowOrNeverMs } from "./ttl.ts";
export { erasedTarget, erasedUser, targetKey, UserId, UserToken, userKey } from "./users.ts";
export { neverPublicName, VapidKeyId, VapidKeyStatus, VapidPublicKey, VapidSubject, vapidKeyId } from "./vapid.ts";
export {
  DeclaredVariable, DeclaredVariables, isPlainVariables, isVariableName, VariableName, Variables, VariableType, VariableValue,
  variableNameRule, variableProblem,
} from "./variables.ts";
export { compareVersions, parseVersion } from "./version.ts";
