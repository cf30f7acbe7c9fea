// Generated from the schemas of packages/contracts by test/generate-types.ts: npm run docs writes it again.

/** One of these values; later versions of Herald may add some. */
export type Open<Known extends string> = Known | (string & Record<never, never>);

export type Device = {
  id: string;
  token: string;
  platform: Platform;
  metadata: Record<string, unknown>;
  identifiers: Record<string, unknown>;
  status: DeviceStatus;
  topics: string[];
  environment?: ApnsEnvironment;
  token_kind?: FcmTokenKind;
  /** Web Push: the key that the subscription was made with */
  vapid_key_id?: string;
  /** The user that it was proven to belong to; null: none */
  user_id: string | null;
  /** When it was last given its user */
  identified_at?: string;
  /** When it last registered; of one that registers unchanged up to a day earlier */
  last_seen_at?: string;
  created_at: string;
  updated_at: string;
};

export type Platform = Open<"ios" | "android" | "web">;

export type DeviceStatus = Open<"active" | "inactive">;

export type ApnsEnvironment = Open<"production" | "sandbox">;

export type FcmTokenKind = Open<"token" | "fid">;

export type User = {
  user_id: string;
  /** At most 100 of them, oldest first */
  devices: Device[];
  /** All of them */
  device_count: number;
  /** When one of these devices last changed or was identified */
  last_seen_at: string;
};

export type UserErasure = {
  user_id: string;
  /** Earlier user tokens of this user are refused */
  erased_at: string;
  databases: "within an hour";
  streams: "within 30 days, as messages expire";
  backups: "yours to delete: Herald has no access to them";
};

export type Topic = {
  id: string;
  name: string;
  /** Subscribed devices; at most 10 s old above 10,000 */
  devices: number;
  /** Only a project token subscribes devices to it */
  closed: boolean;
  created_at: string;
};

export type SubscriptionResult = {
  topic: {
    id: string;
    name: string;
  };
  /** Devices whose subscription changed */
  changed: number;
  /** Devices that the project does not have */
  unknown: string[];
  /** Devices that have no room for another topic: 64 topics and values of metadata and identifiers */
  full: string[];
};

export type Notification = {
  id: string;
  status: NotificationStatus;
  title?: string;
  body?: string;
  targets: string[];
  /** An absolute URL, or a path inside the app such as /news/42. Refused: `javascript:`, `data:`, `vbscript:`, `blob:` and paths that begin with `//`, however they are written */
  link_to?: string;
  data?: Record<string, string>;
  image?: string;
  /** The number on the app's icon */
  badge?: number;
  /** Web: https URL of the small one-coloured image that stands for the app in Android's status bar */
  badge_image?: string;
  sound?: string;
  /** iOS: the notification category that the app registered, whose actions are offered */
  category?: string;
  /** Android: the action of the intent filter whose activity a tap starts. Absent: the app's launcher activity */
  click_action?: string;
  silent?: boolean;
  priority?: Open<"high" | "normal">;
  ttl?: number;
  /** A later notification with the same id takes the place of an earlier one on the screen. Default: the notification's own id, so that only a repeat of it does */
  collapse_id?: string;
  send_at?: string;
  localizations?: Record<
    string,
    {
      title?: string;
      body?: string;
      /** An absolute URL, or a path inside the app such as /news/42. Refused: `javascript:`, `data:`, `vbscript:`, `blob:` and paths that begin with `//`, however they are written */
      link_to?: string;
      image?: string;
    }
  >;
  ios?: Record<string, unknown>;
  android?: Record<string, unknown>;
  web?: Record<string, unknown>;
  counts: NotificationCounts;
  /** At most 10 s behind; in the answers to reads alone */
  opens?: NotificationOpens;
  /** Failed devices by reason */
  failures: Record<string, number>;
  /** Skipped devices by reason */
  skips: Record<string, number>;
  /** Targets that matched no active device */
  unmatched: string[];
  created_at: string;
  completed_at?: string;
};

export type NotificationStatus = Open<"scheduled" | "accepted" | "sending" | "completed" | "cancelled" | "expired">;

export type NotificationCounts = {
  devices: number;
  accepted: number;
  failed: number;
  expired: number;
  cancelled: number;
  skipped: number;
  pending: number;
  opened: number;
};

export type NotificationOpens = {
  /** `opened` / `accepted`; null before any is accepted */
  open_rate: number | null;
  first_opened_at?: string;
  last_opened_at?: string;
  /** Seconds from acceptance or `send_at` to the open, by percentile and within 3 %; all opens */
  time_to_open?: {
    p50: number;
    p75: number;
    p90: number;
    p99: number;
  };
};

export type SentNotification =
  | {
      id: string;
    }
  | {
      /** Why this one was not accepted */
      errors: string[];
    };

export type Delivery = {
  device_id: string;
  platform: Platform;
  status: DeliveryStatus;
  /** Whose the device was when it was sent to */
  user_id?: string;
  reason?: string;
  provider_reason?: string;
  provider_id?: string;
  attempts: number;
  possible_repeat: boolean;
  at: string;
  opened_at?: string;
};

export type DeliveryStatus = Open<"pending" | "accepted" | "failed" | "expired" | "cancelled" | "skipped">;

export type DeviceStory = {
  notification: {
    id: string;
    status: NotificationStatus;
  };
  device: {
    id: string;
    platform: Platform;
    status: Open<"active" | "inactive">;
  };
  matched?: string;
  status: Open<"not_addressed" | "pending" | "accepted" | "failed" | "expired" | "cancelled" | "skipped">;
  /** Whose the device was when it was sent to */
  user_id?: string;
  attempts: DeliveryAttempt[];
  next_attempt_at?: string;
  opened_at?: string;
  /** The same in sentences, in the order in which it happened */
  story: string[];
};

export type DeliveryAttempt = {
  attempt: number;
  at: string;
  /** `deferred` and `unknown` are tried again; `held`: not sent, because the provider's server fails; `sending`: no answer is known yet */
  outcome: Open<
    "accepted" | "failed" | "deferred" | "unknown" | "paused" | "held" | "expired" | "cancelled" | "skipped" | "sending"
  >;
  reason?: string;
  provider_reason?: string;
  provider_id?: string;
  possible_repeat: boolean;
};

export type DryRun = {
  dry_run: true;
  devices: {
    total: number;
    ios: number;
    android: number;
    web: number;
  };
  unmatched: string[];
  /** One payload for each platform that has devices, with placeholders for device and open token */
  rendered: {
    ios?: unknown;
    android?: unknown;
    web?: unknown;
  };
};

export type Stats = {
  /** Start of the first interval */
  from: string;
  /** End of the last interval */
  to: string;
  interval: Open<"hour" | "day">;
  time_zone: string;
  series: {
    /** Start of the interval */
    at: string;
    /** Devices whose provider accepted */
    sent: number;
    /** Devices that failed; expired and cancelled ones are not among them */
    failed: number;
    /** Devices that opened */
    opened: number;
    /** `opened` / `sent`; null where nothing was sent, above 1 where earlier sends were opened */
    open_rate: number | null;
  }[];
  totals: {
    /** Devices whose provider accepted */
    sent: number;
    /** Devices that failed; expired and cancelled ones are not among them */
    failed: number;
    /** Devices that opened */
    opened: number;
    /** `opened` / `sent`; null where nothing was sent, above 1 where earlier sends were opened */
    open_rate: number | null;
    /** `failed` by reason */
    failures: Record<string, number>;
  };
  /** With `notification`: what is known of all its opens, whatever the range */
  notification?: {
    id: string;
    first_opened_at?: string;
    last_opened_at?: string;
    /** Seconds from acceptance or `send_at` to the open, by percentile and within 3 %; all opens */
    time_to_open?: {
      p50: number;
      p75: number;
      p90: number;
      p99: number;
    };
  };
};

export type Pagination = {
  /** All matching rows */
  count: number;
  page: number;
  pages: number;
  from: number;
  to: number;
  last: number;
};

export type Webhook = {
  id: string;
  url: string;
  /** Types of events that it gets; null: all */
  events: string[] | null;
  description?: string;
  enabled: boolean;
  disabled_reason?: DisabledReason;
  disabled_at?: string;
  /** No attempt has succeeded since */
  failing_since?: string;
  /** Until then messages are signed with the secret before the last, too */
  previous_secret_until?: string;
  created_at: string;
  updated_at: string;
};

export type DisabledReason = Open<"requested" | "gone" | "failing">;

export type WebhookMessage = {
  id: string;
  /** `ce-id` of the event */
  event_id: string;
  type: string;
  /** When the event happened */
  timestamp: string;
  status: WebhookMessageStatus;
  attempt_count: number;
  /** What went wrong the last time, in words */
  last_error?: string;
  next_attempt_at?: string;
};

export type WebhookMessageStatus = Open<"waiting" | "delivered" | "failed">;

export type WebhookMessageDetail = {
  id: string;
  /** `ce-id` of the event */
  event_id: string;
  type: string;
  /** When the event happened */
  timestamp: string;
  status: WebhookMessageStatus;
  attempt_count: number;
  /** What went wrong the last time, in words */
  last_error?: string;
  next_attempt_at?: string;
  payload: EventMessage;
  attempts: WebhookAttempt[];
};

export type EventMessage = {
  /** `ce-id` of the event: one that comes again has the same */
  id: string;
  /** Its type; later versions add some */
  type: string;
  /** When it happened */
  timestamp: string;
  /** As the event catalogue (/asyncapi.json) has it */
  data: Record<string, unknown>;
};

export type WebhookAttempt = {
  at: string;
  duration_ms: number;
  /** HTTP status; absent where no answer came */
  status?: number;
  /** Why it failed, in words; absent: it succeeded */
  error?: string;
  /** The beginning of the answer's body */
  response?: string;
};

export type Recovered = {
  messages: number;
  more: boolean;
};

export type Project = {
  id: string;
  name: string;
  open_registration: boolean;
  /** Paths that clients may not write */
  protected_metadata: string[];
  /** What an operator should look at */
  warnings?: string[];
  created_at: string;
};

export type ProjectToken = {
  id: string;
  name: string;
  scopes: Scope[];
  expires_at?: string;
  created_at: string;
};

export type Scope = Open<"send" | "read" | "devices">;

export type IdentityKey = {
  /** What a user token may name as `kid` */
  id: string;
  /** HS256: a secret that Herald made; else a public key of yours */
  algorithm: IdentityAlgorithm;
  created_at: string;
};

export type IdentityAlgorithm = Open<"HS256" | "ES256" | "EdDSA" | "RS256">;

export type ProviderView = {
  provider: Provider;
  /** Key id, team, bundle, expiry, public key: never a secret */
  settings: Record<string, unknown>;
  status: Open<"active" | "paused">;
  paused_reason?: string;
  /** Absent when there is none. Pushes wait and are tried again; new settings send them at once */
  problems?: ProviderProblem[];
  updated_at: string;
};

export type Provider = Open<"apns" | "fcm" | "webpush">;

export type ProviderProblem = {
  /** One of certificate-untrusted, certificate-name, certificate-expired, tls-refused, no-http2, name-not-found, connection-refused, connection-timeout, credential-unproven; more may come */
  reason: string;
  /** The server that was not reached */
  host?: string;
  /** What happened, and what to check */
  detail: string;
  since: string;
};

export type VapidKey = {
  id: string;
  public_key: string;
  status: VapidKeyStatus;
  created_at: string;
  /** When browsers were last given it */
  current_since?: string;
  /** Active subscriptions that were made with it */
  devices: number;
};

export type VapidKeyStatus = Open<"next" | "current" | "earlier">;

export type RetiredVapidKey = {
  id: string;
  /** Active subscriptions that were made with it: they get nothing until they subscribe again */
  lost_devices: number;
};

export type DeadLetter = {
  id: string;
  /** Whose handler gave it up */
  durable: string;
  /** Which contract it is of, such as SendV1 */
  message?: string;
  project_id?: string;
  notification_id?: string;
  /** Where the message was, and where a replay goes */
  subject: string;
  reason: string;
  detail: string;
  deliveries: number;
  died_at: string;
  /** The last time */
  replayed_at?: string;
  /** How often it was replayed; absent: never */
  replays?: number;
  replay_of?: string;
};

export type Replay = {
  id: string;
  /** `replayed`: published again, which does not say that it is processed; `refused`: it would change nothing, or may not be published; `failed`: something is unavailable, try again */
  status: Open<"replayed" | "refused" | "not-found" | "failed">;
  /** The same in words */
  detail: string;
  /** How often it was replayed, with this time */
  replays?: number;
  replayed_at?: string;
};

/** The data of each type of event. */
export type EventData = {
  "device.registered": {
    projectId: string;
    deviceId: string;
    platform: Platform;
    tokenHash: string;
    at: string;
  };
  "device.updated": {
    projectId: string;
    deviceId: string;
    /** Names of the fields that changed */
    changed: string[];
    at: string;
  };
  "device.deactivated": {
    projectId: string;
    deviceId: string;
    reason: Open<"unregistered" | "requested">;
    at: string;
  };
  "device.deleted": {
    projectId: string;
    deviceId: string;
    at: string;
  };
  "device.subscribed": {
    projectId: string;
    deviceId: string;
    topicId: string;
    topic: string;
    at: string;
  };
  "device.unsubscribed": {
    projectId: string;
    deviceId: string;
    topicId: string;
    topic: string;
    at: string;
  };
  "topic.created": {
    projectId: string;
    topicId: string;
    topic: string;
    at: string;
  };
  "topic.deleted": {
    projectId: string;
    topicId: string;
    topic: string;
    at: string;
  };
  "notification.accepted": {
    projectId: string;
    notificationId: string;
    at: string;
    sendAt?: string;
    /** Names of the topics among its targets; absent: none */
    topics?: string[];
    /** The users among its targets; absent: none */
    users?: string[];
  };
  "notification.completed": {
    projectId: string;
    notificationId: string;
    at: string;
    counts: {
      devices: number;
      accepted: number;
      failed: number;
      expired: number;
      cancelled: number;
      skipped?: number;
    };
    failures: Record<string, number>;
    /** Skipped devices by reason; absent: none */
    skips?: Record<string, number>;
  };
  "notification.cancelled": {
    projectId: string;
    notificationId: string;
    at: string;
    counts: {
      devices: number;
      accepted: number;
      failed: number;
      expired: number;
      cancelled: number;
      skipped?: number;
    };
    /** Skipped devices by reason; absent: none */
    skips?: Record<string, number>;
  };
  "notification.expired": {
    projectId: string;
    notificationId: string;
    at: string;
    counts: {
      devices: number;
      accepted: number;
      failed: number;
      expired: number;
      cancelled: number;
      skipped?: number;
    };
    /** Skipped devices by reason; absent: none */
    skips?: Record<string, number>;
  };
  "notification.opened": {
    projectId: string;
    notificationId: string;
    deviceId: string;
    /** Absent for pushes from before open tokens said it */
    platform?: Platform;
    /** Whose the device was when it was sent to; absent: nobody's */
    userId?: string;
    openedAt: string;
  };
  "delivery.accepted": {
    projectId: string;
    notificationId: string;
    at: string;
    batchId: string;
    platform: Platform;
    devices: string[];
    /** Whose each of `devices` is, in their order; null: nobody's; absent: all are nobody's */
    users?: (string | null)[];
  };
  "delivery.failed": {
    projectId: string;
    notificationId: string;
    at: string;
    batchId: string;
    platform: Platform;
    failures: {
      deviceId: string;
      /** Whose the device is; absent: nobody's */
      userId?: string;
      status: Open<"failed" | "expired" | "cancelled" | "skipped">;
      /** A slug of the table of delivery reasons */
      reason: string;
      providerReason?: string;
    }[];
    unregistered: {
      deviceId: string;
      tokenHash: string;
      at: string;
    }[];
  };
  "provider.paused": {
    projectId: string;
    provider: Provider;
    at: string;
    reason: string;
    providerReason: string;
  };
  "provider.resumed": {
    projectId: string;
    provider: Provider;
    at: string;
  };
  "webhook.disabled": {
    projectId: string;
    webhookId: string;
    reason: Open<"failing" | "gone">;
    failingSince?: string;
    at: string;
  };
  "user.erased": {
    projectId: string;
    userId: string;
    at: string;
  };
  "project.deleted": {
    projectId: string;
    at: string;
  };
};

export type NewNotification = {
  title?: string | undefined;
  body?: string | undefined;
  targets: readonly string[];
  /** An absolute URL, or a path inside the app such as /news/42. Refused: `javascript:`, `data:`, `vbscript:`, `blob:` and paths that begin with `//`, however they are written */
  link_to?: string | undefined;
  data?: Record<string, string> | undefined;
  image?: string | undefined;
  /** The number on the app's icon */
  badge?: number | undefined;
  /** Web: https URL of the small one-coloured image that stands for the app in Android's status bar */
  badge_image?: string | undefined;
  sound?: string | undefined;
  /** iOS: the notification category that the app registered, whose actions are offered */
  category?: string | undefined;
  /** Android: the action of the intent filter whose activity a tap starts. Absent: the app's launcher activity */
  click_action?: string | undefined;
  silent?: boolean | undefined;
  priority?: "high" | "normal" | undefined;
  ttl?: number | undefined;
  /** A later notification with the same id takes the place of an earlier one on the screen. Default: the notification's own id, so that only a repeat of it does */
  collapse_id?: string | undefined;
  send_at?: string | undefined;
  localizations?:
    | Record<
        string,
        {
          title?: string | undefined;
          body?: string | undefined;
          /** An absolute URL, or a path inside the app such as /news/42. Refused: `javascript:`, `data:`, `vbscript:`, `blob:` and paths that begin with `//`, however they are written */
          link_to?: string | undefined;
          image?: string | undefined;
        }
      >
    | undefined;
  ios?: Record<string, unknown> | undefined;
  android?: Record<string, unknown> | undefined;
  web?: Record<string, unknown> | undefined;
};

export type NewDevice = {
  token: string;
  platform: "ios" | "android" | "web";
  metadata?: Record<string, unknown> | undefined;
  identifiers?: Record<string, unknown> | undefined;
  environment?: "production" | "sandbox" | undefined;
  token_kind?: "token" | "fid" | undefined;
  keys?:
    | {
        p256dh: string;
        auth: string;
        /** The `applicationServerKey` that the subscription was made with. Absent: what is known of this endpoint stays, and a new one is taken to be made with the current key */
        vapid_key?: string | undefined;
      }
    | undefined;
  topics?: readonly string[] | undefined;
  /** Whose it is; null: nobody's; absent: as it was */
  user_id?: string | null | undefined;
};

export type DeviceChange = {
  token?: string | undefined;
  keys?:
    | {
        p256dh: string;
        auth: string;
        /** The `applicationServerKey` that the subscription was made with. Absent: what is known of this endpoint stays, and a new one is taken to be made with the current key */
        vapid_key?: string | undefined;
      }
    | undefined;
  metadata?: Record<string, unknown> | undefined;
  identifiers?: Record<string, unknown> | undefined;
  status?: "active" | "inactive" | undefined;
  /** With a project token: whose it is; null: nobody's */
  user_id?: string | null | undefined;
};

export type NewTopic = {
  name: string;
  closed?: boolean | undefined;
};

export type TopicChange = {
  closed: boolean;
};

export type StatsQuery = {
  /** Start; absent: 24 hours before `to` */
  from?: string | undefined;
  /** End; absent: now */
  to?: string | undefined;
  interval?: "hour" | "day" | undefined;
  /** Where days and hours begin: an IANA time zone; absent: UTC */
  time_zone?: string | undefined;
  notification?: string | undefined;
  /** Notifications that named this topic as a target */
  topic?: string | undefined;
  /** Notifications that named this user as a target */
  user?: string | undefined;
  /** Deliveries and opens of one platform */
  platform?: "ios" | "android" | "web" | undefined;
};

export type NewWebhook = {
  /** https on port 443 with a public host name */
  url: string;
  /** Types of events that it gets; absent or null: all */
  events?:
    | readonly (
        | "device.registered"
        | "device.updated"
        | "device.deactivated"
        | "device.deleted"
        | "device.subscribed"
        | "device.unsubscribed"
        | "topic.created"
        | "topic.deleted"
        | "notification.accepted"
        | "notification.completed"
        | "notification.cancelled"
        | "notification.expired"
        | "notification.opened"
        | "delivery.accepted"
        | "delivery.failed"
        | "provider.paused"
        | "provider.resumed"
        | "webhook.disabled"
        | "user.erased"
        | "project.deleted"
      )[]
    | null
    | undefined;
  description?: string | undefined;
};

export type WebhookChange = {
  /** https on port 443 with a public host name */
  url?: string | undefined;
  /** Types of events that it gets; absent or null: all */
  events?:
    | readonly (
        | "device.registered"
        | "device.updated"
        | "device.deactivated"
        | "device.deleted"
        | "device.subscribed"
        | "device.unsubscribed"
        | "topic.created"
        | "topic.deleted"
        | "notification.accepted"
        | "notification.completed"
        | "notification.cancelled"
        | "notification.expired"
        | "notification.opened"
        | "delivery.accepted"
        | "delivery.failed"
        | "provider.paused"
        | "provider.resumed"
        | "webhook.disabled"
        | "user.erased"
        | "project.deleted"
      )[]
    | null
    | undefined;
  description?: string | undefined;
  enabled?: boolean | undefined;
};

export type NewProject = {
  name: string;
  open_registration?: boolean | undefined;
  /** Paths of `metadata` and `identifiers`, such as `user_id` or `billing.plan`, that clients may not write. A path covers what is below it, in upper and lower case and with or without `_` */
  protected_metadata?: readonly string[] | undefined;
};

export type ProjectChange = {
  name?: string | undefined;
  open_registration?: boolean | undefined;
  /** Paths of `metadata` and `identifiers`, such as `user_id` or `billing.plan`, that clients may not write. A path covers what is below it, in upper and lower case and with or without `_` */
  protected_metadata?: readonly string[] | undefined;
};

export type NewProjectToken = {
  name: string;
  scopes?: readonly ("send" | "read" | "devices")[] | undefined;
  expires_at?: string | undefined;
};

export type NewIdentityKey = {
  public_key?: string | Record<string, unknown> | undefined;
};

export type ApnsSettings =
  | {
      key_id: string;
      team_id: string;
      private_key: string;
      bundle_id: string;
      environment: "production" | "sandbox";
      endpoint?: string | undefined;
      ca?: string | undefined;
    }
  | {
      certificate: string;
      private_key: string;
      bundle_id: string;
      environment: "production" | "sandbox";
      endpoint?: string | undefined;
      ca?: string | undefined;
    };

export type FcmSettings = {
  service_account: Record<string, unknown>;
  endpoint?: string | undefined;
  ca?: string | undefined;
};

export type WebPushSettings = {
  subject: string;
  public_key?: string | undefined;
  private_key?: string | undefined;
  endpoint?: string | undefined;
  ca?: string | undefined;
};

export type VapidKeyPair = {
  public_key?: string | undefined;
  private_key: string;
};
