/** The level at which a message or request that ended with the error is logged. */
export type LogLevel = "debug" | "info" | "warn" | "error";

/**
 * What happens to a message whose handler fails:
 * `never`: it cannot succeed and becomes a dead letter; `later`: it is retried, and the retry counts towards the limit;
 * `unavailable`: a dependency is unavailable, so the message waits and no retry is counted.
 */
export type Retry = "never" | "later" | "unavailable";

type ErrorEntry = {
  /** HTTP status when a request ends with it. */
  readonly status: number;
  /** The RFC 9457 title: the same for every occurrence. */
  readonly title: string;
  readonly retry: Retry;
  readonly log: LogLevel;
};

/** Every error that Herald answers with. A new one does not compile until all its fields are given. */
export const errors = {
  "malformed-json": { status: 400, title: "The body is not JSON", retry: "never", log: "info" },
  "malformed-request": { status: 400, title: "The request is not valid HTTP", retry: "never", log: "info" },
  unauthenticated: { status: 401, title: "The credential is missing or unknown", retry: "never", log: "info" },
  forbidden: { status: 403, title: "The credential does not permit this", retry: "never", log: "info" },
  "csrf-token-invalid": { status: 403, title: "The CSRF token is missing or wrong", retry: "never", log: "info" },
  "user-token-invalid": { status: 403, title: "The user token is invalid", retry: "never", log: "info" },
  "metadata-protected": { status: 403, title: "Clients may not write this field", retry: "never", log: "info" },
  "topic-closed": { status: 403, title: "Only a project token subscribes to this topic", retry: "never", log: "info" },
  "device-quota-exceeded": { status: 403, title: "The project has too many devices", retry: "never", log: "warn" },
  "open-token-invalid": { status: 403, title: "The open token is invalid", retry: "never", log: "info" },
  "route-not-found": { status: 404, title: "No such route", retry: "never", log: "info" },
  "project-not-found": { status: 404, title: "No such project", retry: "never", log: "info" },
  "token-not-found": { status: 404, title: "No such project token", retry: "never", log: "info" },
  "operator-not-found": { status: 404, title: "No such operator", retry: "never", log: "info" },
  "session-not-found": { status: 404, title: "The request has no session", retry: "never", log: "info" },
  "provider-not-found": { status: 404, title: "No such provider settings", retry: "never", log: "info" },
  "device-not-found": { status: 404, title: "No such device", retry: "never", log: "info" },
  "user-not-found": { status: 404, title: "No such user", retry: "never", log: "info" },
  "identity-key-not-found": { status: 404, title: "No such identity key", retry: "never", log: "info" },
  "topic-not-found": { status: 404, title: "No such topic", retry: "never", log: "info" },
  "import-not-found": { status: 404, title: "No such import", retry: "never", log: "info" },
  "notification-not-found": { status: 404, title: "No such notification", retry: "never", log: "info" },
  "vapid-key-not-found": { status: 404, title: "No such Web Push key", retry: "never", log: "info" },
  "dead-letter-not-found": { status: 404, title: "No such dead letter", retry: "never", log: "info" },
  "webhook-not-found": { status: 404, title: "No such webhook", retry: "never", log: "info" },
  "webhook-message-not-found": { status: 404, title: "No such webhook message", retry: "never", log: "info" },
  "method-not-allowed": { status: 405, title: "The route does not support this method", retry: "never", log: "info" },
  "not-acceptable": { status: 406, title: "Answers are JSON only", retry: "never", log: "info" },
  "token-held": { status: 409, title: "Another device has this push token", retry: "never", log: "info" },
  "user-token-used": { status: 409, title: "A newer user token was used already", retry: "never", log: "info" },
  "identity-key-limit": { status: 409, title: "The project has too many identity keys", retry: "never", log: "info" },
  "topic-exists": { status: 409, title: "The topic already exists", retry: "never", log: "info" },
  "import-completed": { status: 409, title: "The import has its whole file", retry: "never", log: "info" },
  "import-position-mismatch": {
    status: 409,
    title: "The upload continues at another line",
    retry: "never",
    log: "info",
  },
  "notification-final": { status: 409, title: "The notification has already ended", retry: "never", log: "info" },
  "replay-refused": { status: 409, title: "The dead letter cannot be replayed", retry: "never", log: "info" },
  "vapid-key-staged": { status: 409, title: "Another key is already staged", retry: "never", log: "info" },
  "vapid-key-current": { status: 409, title: "The key is the current key", retry: "never", log: "info" },
  "vapid-key-in-use": { status: 409, title: "Subscriptions still use the key", retry: "never", log: "info" },
  "too-many-vapid-keys": { status: 409, title: "The project has too many keys", retry: "never", log: "info" },
  "webhook-disabled": { status: 409, title: "The webhook is disabled", retry: "never", log: "info" },
  "webhook-limit": { status: 409, title: "The project has too many webhooks", retry: "never", log: "info" },
  "request-in-progress": { status: 409, title: "The same request is still in progress", retry: "never", log: "info" },
  "notification-gone": {
    status: 410,
    title: "The notification has been deleted after its retention",
    retry: "never",
    log: "info",
  },
  "position-gone": { status: 410, title: "Events after this position have expired", retry: "never", log: "info" },
  "body-too-large": { status: 413, title: "The body is too large", retry: "never", log: "info" },
  "unsupported-media-type": {
    status: 415,
    title: "The body's media type is not accepted",
    retry: "never",
    log: "info",
  },
  "validation-failed": { status: 422, title: "The request is not valid", retry: "never", log: "info" },
  "ambiguous-device": {
    status: 422,
    title: "The push token matches more than one device",
    retry: "never",
    log: "info",
  },
  "idempotency-key-reused": {
    status: 422,
    title: "The idempotency key was used for another request",
    retry: "never",
    log: "info",
  },
  "rate-limited": { status: 429, title: "Too many requests", retry: "later", log: "info" },
  "quota-exceeded": { status: 429, title: "The project has used up its quota", retry: "later", log: "info" },
  schema: { status: 500, title: "The message does not match its contract", retry: "never", log: "error" },
  internal: { status: 500, title: "Internal error", retry: "later", log: "error" },
  "bus-unavailable": { status: 503, title: "The message bus is unavailable", retry: "unavailable", log: "warn" },
  "database-unavailable": { status: 503, title: "A database is unavailable", retry: "unavailable", log: "warn" },
  "service-unavailable": { status: 503, title: "A service is unavailable", retry: "unavailable", log: "warn" },
  overloaded: { status: 503, title: "Too many requests are in progress", retry: "unavailable", log: "warn" },
  "queue-full": { status: 503, title: "The queue is full", retry: "unavailable", log: "warn" },
} as const satisfies Record<string, ErrorEntry>;

export type ErrorCode = keyof typeof errors;

/** Why a device did not get a notification: the keys of `failures` and `skips`, and the `reason` of a delivery. */
export const deliveryReasons = {
  unregistered: "The provider reported that the push token is no longer valid. Herald deactivated the device.",
  "unregistered-kept":
    "The provider reported that the push token is not valid. Herald kept the device because it has registered again, or because too many devices of this notification got the same verdict.",
  "payload-too-large": "The rendered payload is larger than the provider accepts.",
  "payload-invalid": "The provider refused the payload.",
  "token-invalid": "The provider does not recognise the push token.",
  "topic-mismatch": "The push token belongs to a different app than the project's provider settings.",
  "environment-mismatch":
    "The device is registered in an APNs environment that does not accept the project's credential.",
  "token-kind-mismatch":
    "The Firebase project cannot send to the app of this token: an iOS or web app without a key in Firebase.",
  "provider-rejected": "The provider refused this message for this device.",
  "provider-not-configured": "The project has no provider for this device's platform.",
  "provider-misconfigured":
    "The provider refused the project's credential, and the notification expired before the credential was fixed.",
  "endpoint-forbidden": "Herald may not send to this endpoint.",
  "vapid-key-retired":
    "The project has retired the Web Push key of this subscription. The browser must subscribe again.",
  "attempts-exhausted": "The provider did not accept the message in eight attempts.",
  expired: "The notification's time to live ended before the provider accepted it.",
  cancelled: "The notification was cancelled before it was sent to this device.",
  moved: "While the push waited, the device was deleted, deactivated or given to another user.",
  internal: "Herald could not process the push. The message is a dead letter.",
} as const satisfies Record<string, string>;

/** Why pushes cannot be sent with the provider's settings: the `reason` of a provider problem, and what to check. */
export const providerProblems = {
  "certificate-untrusted":
    "Check that `ca` in the provider's settings signed the server's certificate, and that no proxy answers instead.",
  "certificate-name":
    "The server's certificate is for another name. Check `endpoint` in the provider's settings, and that no proxy answers instead.",
  "certificate-expired": "Check the server's certificate, and the clock of the machine that runs dispatch.",
  "tls-refused":
    "The TLS handshake failed. Check `endpoint` and `certificate` in the provider's settings, and any proxy.",
  "no-http2": "The server does not offer HTTP/2. Check `endpoint` in the provider's settings, and any proxy.",
  "name-not-found": "Check `endpoint` in the provider's settings, and the DNS of the machine that runs dispatch.",
  "connection-refused":
    "Nothing listens there. Check `endpoint` in the provider's settings, and that the server is running.",
  "connection-timeout": "Nothing answers there. Check the firewall and the route from the machine that runs dispatch.",
  "credential-unproven":
    "The provider says that every device so far belongs to another app. Check that the credential is the app's.",
} as const satisfies Record<string, string>;

export type ProviderProblemReason = keyof typeof providerProblems;

/** The slug of a delivery's final reason. */
export type DeliveryReason = keyof typeof deliveryReasons;
