/**
 * Apple's documented answers, reason → status ("Handling notification responses from APNs"; for channels "Handling error responses from Apple
 * Push Notification service").
 */
const statuses = {
  BadChannelId: 400,
  BadCollapseId: 400,
  BadDeviceToken: 400,
  BadExpirationDate: 400,
  BadMessageId: 400,
  BadPriority: 400,
  BadTopic: 400,
  CannotCreateChannelConfig: 400,
  ChannelNotRegistered: 400,
  DeviceTokenNotForTopic: 400,
  DuplicateHeaders: 400,
  FeatureNotEnabled: 400,
  IdleTimeout: 400,
  InvalidPushType: 400,
  MissingChannelId: 400,
  MissingDeviceToken: 400,
  MissingPushType: 400,
  MissingTopic: 400,
  PayloadEmpty: 400,
  TopicDisallowed: 400,
  BadCertificate: 403,
  BadCertificateEnvironment: 403,
  BadEnvironmentKeyIdInToken: 403,
  // The real servers send this where Apple's page says …KeyIdInToken.
  BadEnvironmentKeyInToken: 403,
  ExpiredProviderToken: 403,
  Forbidden: 403,
  InvalidProviderToken: 403,
  MissingProviderToken: 403,
  UnrelatedKeyIdInToken: 403,
  BadPath: 404,
  MethodNotAllowed: 405,
  ExpiredToken: 410,
  Unregistered: 410,
  PayloadTooLarge: 413,
  TooManyProviderTokenUpdates: 429,
  TooManyRequests: 429,
  InternalServerError: 500,
  ServiceUnavailable: 503,
  Shutdown: 503,
} as const;

export type ApnsReason = keyof typeof statuses;

/** The reason of a status when a script names none. */
const usual: Readonly<Record<number, ApnsReason>> = {
  400: "BadDeviceToken",
  403: "InvalidProviderToken",
  404: "BadPath",
  405: "MethodNotAllowed",
  410: "Unregistered",
  413: "PayloadTooLarge",
  429: "TooManyRequests",
  500: "InternalServerError",
  503: "ServiceUnavailable",
};

export const statusOf = (reason: ApnsReason): number => statuses[reason];

export const usualReason = (status: number): ApnsReason | undefined => usual[status];

export const reasonsOf = (status: number): readonly string[] =>
  Object.entries(statuses)
    .filter(([, of]) => of === status)
    .map(([reason]) => reason);

/** 200 and all error statuses that Apple uses. */
export const apnsStatuses: readonly number[] = [...new Set<number>([200, ...Object.values(statuses)])].sort();

/** Why a request is refused: Apple's reason, and the problem in words. */
export interface Refusal {
  readonly reason: ApnsReason;
  readonly problem: string;
}

export const refuse = (reason: ApnsReason, problem: string): Refusal => ({ reason, problem });
