/** How loudly a settled message or a request that ended with the error is logged. */
export type LogLevel = "debug" | "info" | "warn" | "error";

/**
 * What a message handler's failure means for the message:
 * `never` it can never succeed, so it goes to the dead letters; `later` it is tried again and counts towards the guard;
 * `away` something it needs is unavailable, so it is held and nothing is used up.
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

/** Every error Herald can answer with. A new one does not compile until all its answers are given. */
export const errors = {
  "malformed-json": { status: 400, title: "The body is not JSON", retry: "never", log: "info" },
  "malformed-request": { status: 400, title: "The request is not HTTP as expected", retry: "never", log: "info" },
  unauthenticated: { status: 401, title: "No or unknown credential", retry: "never", log: "info" },
  forbidden: { status: 403, title: "The credential does not allow this", retry: "never", log: "info" },
  "user-token-invalid": { status: 403, title: "The user token is not accepted", retry: "never", log: "info" },
  "metadata-protected": { status: 403, title: "The client may not write this", retry: "never", log: "info" },
  "topic-closed": { status: 403, title: "Only the project's token subscribes", retry: "never", log: "info" },
  "device-quota-exceeded": { status: 403, title: "The project has too many devices", retry: "never", log: "warn" },
  "open-token-invalid": { status: 403, title: "The open token does not fit", retry: "never", log: "info" },
  "route-not-found": { status: 404, title: "No such route", retry: "never", log: "info" },
  "project-not-found": { status: 404, title: "No such project", retry: "never", log: "info" },
  "token-not-found": { status: 404, title: "No such project token", retry: "never", log: "info" },
  "provider-not-found": { status: 404, title: "No such provider settings", retry: "never", log: "info" },
  "device-not-found": { status: 404, title: "No such device", retry: "never", log: "info" },
  "user-not-found": { status: 404, title: "No such user", retry: "never", log: "info" },
  "identity-key-not-found": { status: 404, title: "No such identity key", retry: "never", log: "info" },
  "topic-not-found": { status: 404, title: "No such topic", retry: "never", log: "info" },
  "notification-not-found": { status: 404, title: "No such notification", retry: "never", log: "info" },
  "vapid-key-not-found": { status: 404, title: "No such Web Push key", retry: "never", log: "info" },
  "dead-letter-not-found": { status: 404, title: "No such dead letter", retry: "never", log: "info" },
  "webhook-not-found": { status: 404, title: "No such webhook", retry: "never", log: "info" },
  "webhook-message-not-found": { status: 404, title: "No such webhook message", retry: "never", log: "info" },
  "method-not-allowed": { status: 405, title: "The route has no such method", retry: "never", log: "info" },
  "not-acceptable": { status: 406, title: "Only JSON is answered", retry: "never", log: "info" },
  "token-held": { status: 409, title: "Another device holds this push token", retry: "never", log: "info" },
  "user-token-used": { status: 409, title: "The user token is not newer than the last", retry: "never", log: "info" },
  "identity-key-limit": { status: 409, title: "The project has too many identity keys", retry: "never", log: "info" },
  "topic-exists": { status: 409, title: "The topic exists already", retry: "never", log: "info" },
  "notification-final": { status: 409, title: "The notification is final", retry: "never", log: "info" },
  "replay-refused": { status: 409, title: "The dead letter cannot be replayed", retry: "never", log: "info" },
  "vapid-key-staged": { status: 409, title: "Another key is staged already", retry: "never", log: "info" },
  "vapid-key-current": { status: 409, title: "The key is the current one", retry: "never", log: "info" },
  "vapid-key-in-use": { status: 409, title: "Subscriptions still need the key", retry: "never", log: "info" },
  "too-many-vapid-keys": { status: 409, title: "The project has too many keys", retry: "never", log: "info" },
  "webhook-disabled": { status: 409, title: "The webhook is disabled", retry: "never", log: "info" },
  "webhook-limit": { status: 409, title: "The project has no room for another webhook", retry: "never", log: "info" },
  "request-in-progress": { status: 409, title: "The same request is still running", retry: "never", log: "info" },
  "notification-gone": { status: 410, title: "The notification is no longer kept", retry: "never", log: "info" },
  "position-gone": { status: 410, title: "Events from there are not kept any more", retry: "never", log: "info" },
  "body-too-large": { status: 413, title: "The body is too large", retry: "never", log: "info" },
  "unsupported-media-type": { status: 415, title: "The body must be application/json", retry: "never", log: "info" },
  "validation-failed": { status: 422, title: "The content is not valid", retry: "never", log: "info" },
  "ambiguous-device": { status: 422, title: "The token names more than one device", retry: "never", log: "info" },
  "idempotency-key-reused": { status: 422, title: "The key was used for another request", retry: "never", log: "info" },
  "rate-limited": { status: 429, title: "Too many requests", retry: "later", log: "info" },
  "quota-exceeded": { status: 429, title: "The project has used up its quota", retry: "later", log: "info" },
  schema: { status: 500, title: "The message is not what its contract says", retry: "never", log: "error" },
  internal: { status: 500, title: "Herald failed", retry: "later", log: "error" },
  "bus-unavailable": { status: 503, title: "The message bus is unavailable", retry: "unavailable", log: "warn" },
  "database-unavailable": { status: 503, title: "A database is unavailable", retry: "unavailable", log: "warn" },
  "service-unavailable": { status: 503, title: "A service does not answer", retry: "unavailable", log: "warn" },
  overloaded: { status: 503, title: "Too many requests are under way", retry: "unavailable", log: "warn" },
  "queue-full": { status: 503, title: "The queue is full", retry: "unavailable", log: "warn" },
} as const satisfies Record<string, ErrorEntry>;

export type ErrorCode = keyof typeof errors;

/** Why a device did not get a notification: the slugs under `failures` and the `reason` of a delivery, each in words. */
export const deliveryReasons = {
  unregistered: "The provider says that the push token is no longer valid, so the device was retired.",
  "unregistered-kept":
    "The provider said that the push token is not valid, but the device was kept: it registered again since, or too many devices of this notification got the same verdict.",
  "payload-too-large": "The rendered payload is larger than the provider accepts.",
  "payload-invalid": "The provider refused the payload.",
  "token-invalid": "The provider does not recognise the push token as one of its own.",
  "topic-mismatch": "The push token belongs to another app than the project's provider settings name.",
  "environment-mismatch":
    "The device names an APNs environment that the project's credential is not accepted in; the project's own is another.",
  "token-kind-mismatch":
    "The push token is of an app that the Firebase project cannot send to: an iOS or web app without its key in Firebase.",
  "provider-rejected": "The provider refused this message for this device.",
  "provider-not-configured": "The project has no provider for this device's platform.",
  "provider-misconfigured":
    "The provider refuses the project's credential, and the notification expired before it was mended.",
  "endpoint-forbidden": "The endpoint is not one that Herald may send to.",
  "vapid-key-retired":
    "The subscription was made with a Web Push key that the project has retired; its browser has to subscribe again.",
  "attempts-exhausted": "The provider could not take the message in any of eight attempts.",
  expired: "The notification's time to live ended before it could be sent.",
  cancelled: "The notification was cancelled before it was sent to this device.",
  moved: "While it waited, the device was deleted or deactivated, or it now belongs to another user.",
  internal: "Herald failed to process it; the dead letters hold the message.",
} as const satisfies Record<string, string>;

/** Why pushes cannot be sent although the provider's settings are used: the `reason` of a provider's problem, and what to check. */
export const providerProblems = {
  "certificate-untrusted":
    "Check that `ca` of the provider's settings is the authority that signed the server's certificate, and that no proxy answers in its place.",
  "certificate-name":
    "The server shows a certificate for another name: check `endpoint` of the provider's settings, and that no proxy answers in its place.",
  "certificate-expired": "Check the server's certificate and the clock of the machine that dispatch runs on.",
  "tls-refused":
    "The TLS handshake failed: check `endpoint` and `certificate` of the provider's settings, and any proxy.",
  "no-http2": "The server does not offer HTTP/2: check `endpoint` of the provider's settings, and any proxy.",
  "name-not-found": "Check `endpoint` of the provider's settings, and the DNS of the machine that dispatch runs on.",
  "connection-refused": "Nothing listens there: check `endpoint` of the provider's settings, and that the server runs.",
  "connection-timeout":
    "Nothing answers there: check the firewall and the route from the machine that dispatch runs on.",
  "credential-unproven":
    "Every device so far is said to belong to another app: check that the credential is that of the app, or wait for a device of it.",
} as const satisfies Record<string, string>;

export type ProviderProblemReason = keyof typeof providerProblems;

/** The slug of a delivery's final reason. */
export type DeliveryReason = keyof typeof deliveryReasons;
