/** The level at which a message or request that ended with the error is logged. */
export type LogLevel = "debug" | "info" | "warn" | "error";

/**
 * How a message is retried after its handler fails:
 * `never`: it cannot succeed and becomes a dead letter; `later`: it is retried, and the retry counts towards the limit;
 * `unavailable`: a dependency is unavailable, so the message waits and no retry is counted.
 */
export type Retry = "never" | "later" | "unavailable";

type ErrorEntry = {
  /** HTTP status of a request that ends with the error. */
  readonly status: number;
  /** The RFC 9457 title: the same for every occurrence. */
  readonly title: string;
  readonly retry: Retry;
  readonly log: LogLevel;
};

/** The request is at fault, so a repeat fails too. */
const refused = <const Status extends number>(status: Status, title: string) =>
  ({ status, title, retry: "never", log: "info" }) as const;

/** Every error that Herald answers with. A new error compiles only with all its fields. */
export const errors = {
  "malformed-json": refused(400, "The body is not JSON"),
  "malformed-request": refused(400, "The request is not valid HTTP"),
  "sign-in-expired": refused(400, "The sign-in has expired or was begun elsewhere"),
  unauthenticated: refused(401, "The credential is missing or unknown"),
  "identity-token-invalid": refused(401, "The identity provider's token is not valid"),
  forbidden: refused(403, "The credential does not permit this"),
  "sign-in-not-permitted": refused(403, "This person may not use Herald"),
  "csrf-token-invalid": refused(403, "The CSRF token is missing or wrong"),
  "user-token-invalid": refused(403, "The user token is invalid"),
  "topic-closed": refused(403, "Only a project token subscribes to this topic"),
  "device-quota-exceeded": { status: 403, title: "The project has too many devices", retry: "never", log: "warn" },
  "open-token-invalid": refused(403, "The open token is invalid"),
  "route-not-found": refused(404, "Route not found"),
  "project-not-found": refused(404, "Project not found"),
  "token-not-found": refused(404, "Project token not found"),
  "operator-not-found": refused(404, "Operator not found"),
  "session-not-found": refused(404, "The request has no session"),
  "provider-not-found": refused(404, "Provider settings not found"),
  "device-not-found": refused(404, "Device not found"),
  "user-not-found": refused(404, "User not found"),
  "identity-key-not-found": refused(404, "Identity key not found"),
  "topic-not-found": refused(404, "Topic not found"),
  "kind-not-found": refused(404, "Kind not found"),
  "template-not-found": refused(404, "Template not found"),
  "import-not-found": refused(404, "Import not found"),
  "notification-not-found": refused(404, "Notification not found"),
  "activity-not-found": refused(404, "Activity not found"),
  "vapid-key-not-found": refused(404, "Web Push key not found"),
  "dead-letter-not-found": refused(404, "Dead letter not found"),
  "webhook-not-found": refused(404, "Webhook not found"),
  "webhook-message-not-found": refused(404, "Webhook message not found"),
  "method-not-allowed": refused(405, "The route does not support this method"),
  "not-acceptable": refused(406, "Answers are JSON only"),
  "project-key-taken": refused(409, "Another project has this key"),
  "token-in-use": refused(409, "Another device has this push token"),
  "user-token-used": refused(409, "A newer user token was used already"),
  "identity-key-limit": refused(409, "The project has too many identity keys"),
  "topic-exists": refused(409, "The topic already exists"),
  "kind-limit": refused(409, "The project has too many kinds"),
  "template-limit": refused(409, "The project has too many templates"),
  "import-completed": refused(409, "The import has its whole file"),
  "import-position-mismatch": refused(409, "The upload continues at another line"),
  "recipients-complete": refused(409, "The notification has all its recipients"),
  "activity-exists": refused(409, "Another activity had this id"),
  "activity-ended": refused(409, "The activity has ended"),
  "notification-final": refused(409, "The notification has already ended"),
  "notification-started": refused(409, "The notification is being sent already"),
  "notification-proposed": refused(409, "The notification waits for approval"),
  "approval-required": refused(409, "So many devices need approval"),
  "recipients-incomplete": refused(409, "Its recipients are not complete"),
  "audience-grew": refused(409, "The audience has grown since it was proposed"),
  "project-paused": refused(409, "Sending is paused"),
  "replay-refused": refused(409, "The dead letter cannot be replayed"),
  "vapid-key-staged": refused(409, "Another key is already staged"),
  "vapid-key-current": refused(409, "The key is the current key"),
  "vapid-key-in-use": refused(409, "Subscriptions still use the key"),
  "too-many-vapid-keys": refused(409, "The project has too many keys"),
  "webhook-disabled": refused(409, "The webhook is disabled"),
  "webhook-limit": refused(409, "The project has too many webhooks"),
  "request-in-progress": refused(409, "The same request is still in progress"),
  "notification-gone": refused(410, "The notification has been deleted after its retention"),
  "position-gone": refused(410, "Events after this position have expired"),
  "body-too-large": refused(413, "The body is too large"),
  "unsupported-media-type": refused(415, "The body's media type is not accepted"),
  "validation-failed": refused(422, "The request is not valid"),
  "ambiguous-device": refused(422, "The push token matches more than one device"),
  "idempotency-key-reused": refused(422, "The idempotency key was used for another request"),
  "rate-limited": { status: 429, title: "Too many requests", retry: "later", log: "info" },
  "quota-exceeded": { status: 429, title: "The project has used up its quota", retry: "later", log: "info" },
  schema: { status: 500, title: "The message does not match its contract", retry: "never", log: "error" },
  "process-crashed": { status: 500, title: "The process ended while it handled this", retry: "never", log: "error" },
  internal: { status: 500, title: "Internal error", retry: "later", log: "error" },
  "bus-unavailable": { status: 503, title: "The message bus is unavailable", retry: "unavailable", log: "warn" },
  "database-unavailable": { status: 503, title: "A database is unavailable", retry: "unavailable", log: "warn" },
  "service-unavailable": { status: 503, title: "A service is unavailable", retry: "unavailable", log: "warn" },
  "identity-provider-unavailable": {
    status: 503,
    title: "The identity provider is unavailable",
    retry: "unavailable",
    log: "warn",
  },
  "identity-provider-refused": {
    status: 502,
    title: "The identity provider refuses Herald",
    retry: "later",
    log: "warn",
  },
  overloaded: { status: 503, title: "Too many requests are in progress", retry: "unavailable", log: "warn" },
  // An upload is slowed down by it, ten times a second.
  "queue-full": { status: 503, title: "The queue is full", retry: "unavailable", log: "info" },
} as const satisfies Record<string, ErrorEntry>;

export type ErrorCode = keyof typeof errors;

/** Why a device did not get a notification: the keys of `failures` and `skips`, and the `reason` of a delivery. */
export const deliveryReasons = {
  unregistered:
    "The provider reported that the push token is no longer valid. Herald deactivated the device; of a send with `push_type` it removed that token alone.",
  "unregistered-kept":
    "The provider reported that the push token is not valid. Herald kept the device because it has registered again, or because too many devices of this notification got the same answer.",
  "payload-too-large": "The rendered payload is larger than the provider accepts.",
  "payload-invalid":
    "The provider refused the payload. Check `data` and the override of the platform, and the fields that the provider names.",
  "token-invalid":
    "The provider does not recognise the push token. Herald deactivated the device, unless only one APNs environment could be asked, or too many devices of this notification got such an answer.",
  "topic-mismatch": "The push token belongs to a different app than the project's provider settings.",
  "app-not-configured":
    "The device names an app that is not in the project's provider settings, or whose pushes Apple refuses with the project's key.",
  "push-type-refused": "Apple refuses pushes of this type to the app: it lacks the entitlement.",
  "environment-mismatch":
    "The device is registered in an APNs environment that does not accept the project's credential.",
  "token-kind-mismatch":
    "The Firebase project cannot send to the app of this token: an iOS or web app without a key in Firebase.",
  "provider-rejected": "The provider refused this message for this device.",
  "provider-not-configured": "The project has no provider for this device's platform.",
  "provider-misconfigured":
    "The provider refused the project's credential, and the notification expired before the credential was fixed.",
  "endpoint-forbidden":
    "Herald may not send to this endpoint. It deactivated the device if the endpoint is not an https URL of a public host.",
  "vapid-key-retired":
    "The project has retired the Web Push key of this subscription. The browser must subscribe again.",
  "attempts-exhausted":
    "The provider did not accept the message in eight attempts. Attempts that it certainly did not process do not count.",
  "value-missing": "A text shows a value that the recipient does not have, and has no `default` for it.",
  "link-refused": "With the recipient's values a link is not one that may be opened.",
  "render-failed": "A text could not be rendered with the recipient's values.",
  "values-lost": "The recipient's values are no longer stored.",
  expired: "The notification's time to live ended before the provider accepted it.",
  paused: "The notification's time to live ended while it, its project or all sends were paused.",
  cancelled: "The notification was cancelled before it was sent to this device.",
  moved: "While the push waited, the device was deleted, deactivated or given to another user.",
  muted: "The device's preferences, or those of its user, have this kind of notification switched off.",
  "quiet-hours": "It would have arrived in quiet hours, or waited for their end longer than its time to live.",
  "frequency-cap": "The device's user has got as many notifications of this kind as its frequency cap allows.",
  "past-local-time": "The device's clock had passed the local time of the notification, which skips such devices.",
  replaced: "A newer state of the Live Activity, or its end, replaced this one before it was sent.",
  internal: "Herald could not process the push. The message is a dead letter.",
} as const satisfies Record<string, string>;

/** What to do about a word of a provider that says more than Herald's reason for the delivery. */
const providerAdvice: Readonly<Record<string, string>> = {
  BadJwtToken:
    "Apple refuses the token that Herald signs for Web Push. Put a `subject` with a host of the Internet into the provider's settings, and check the clock of the machine that runs dispatch.",
  BadWebPushTopic: "Apple cannot decode the topic, which was made of `collapse_id`: choose another `collapse_id`.",
  PayloadEmpty: "APNs found no object `aps` in the payload, or no JSON that it reads: check the override `ios`.",
  VapidPkHashMismatch: "The subscription was made with another Web Push key: the browser must subscribe again.",
};

/** The advice for a provider's word; undefined if there is none. */
export const adviceOn = (providerReason: string): string | undefined =>
  Object.hasOwn(providerAdvice, providerReason) ? providerAdvice[providerReason] : undefined;

/** Why the provider's settings cannot send pushes: the `reason` of a provider problem, and advice. */
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
  "not-the-provider":
    "Something answers in the provider's place, so no answer is believed. Check proxies and filters between dispatch and the provider, and `endpoint` in the provider's settings.",
  "proxy-unreachable":
    "Check `HTTPS_PROXY` of dispatch, and that the proxy runs and can reach the server. `NO_PROXY` names servers that need no proxy.",
  "proxy-refused":
    "The proxy must allow CONNECT to this host and port. After 401 or 407, check the user and password in `HTTPS_PROXY` of dispatch.",
  "proxy-failed": "The proxy does not reach the server. Check its DNS, its firewall and its log.",
  "credential-unproven":
    "The provider says that every device so far belongs to another app. Check that the credential is the app's.",
} as const satisfies Record<string, string>;

export type ProviderProblemReason = keyof typeof providerProblems;

/** The slug of a delivery's final reason. */
export type DeliveryReason = keyof typeof deliveryReasons;
