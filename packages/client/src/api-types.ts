// Generated from the schemas of packages/contracts by test/generate-types.ts: npm run docs writes it again.

/** One of these values; later versions of Herald may add some. */
export type Open<Known extends string> = Known | (string & Record<never, never>);

/** A target that names one user, or one device by its id or push token. */
export type RecipientTarget = `user:${string}` | `device:${string}` | `token:${string}`;

/** Whom a notification is for. A topic's bare name, which the API takes too, is none here: a wrong prefix would look like one. */
export type Target =
  | "all"
  | RecipientTarget
  | `topic:${string}`
  | `${"metadata" | "identifiers"}:${string}=${string}`
  | `condition:${string}`;

export type DeclaredVariable = {
  type: Open<"string" | "number" | "boolean" | "datetime">;
  /** The value where a send gives none; absent: a send must give one */
  fallback?: string | number | boolean;
};

/** `proposed`: it waits for an operator's approval. `paused`: it was paused itself; while its project is paused, it keeps the status that it has */
export type NotificationStatus = Open<
  "proposed" | "scheduled" | "accepted" | "sending" | "paused" | "completed" | "cancelled" | "expired"
>;

export type PushType = Open<
  "voip" | "complication" | "widgets" | "controls" | "location" | "fileprovider" | "pushtotalk" | "liveactivity"
>;

export type ActivityPush = {
  id: string;
  /** Absent: of the end at `ends_at` */
  version?: number;
  event: ActivityEvent;
  attributes_type?: string;
  /** The `ActivityAttributes` of the app, which do not change. Herald adds `herald`, by which the app reports an open */
  attributes?: Record<string, unknown>;
  /** The `ContentState` of the app's attributes, as the app decodes it. A Swift `Date` in it counts seconds from 2001, unless the app decodes a type of its own */
  content_state: Record<string, unknown>;
  /** Seconds since 1970. iOS ignores a state older than the shown one */
  timestamp: number;
  alert?: ActivityAlert;
  stale_at?: string;
  dismiss_at?: string;
  relevance?: number;
  /** Of a join: the activity has ended */
  ended?: true;
};

export type ActivityEvent = Open<"start" | "update" | "end" | "join">;

export type ActivityAlert = {
  title: string;
  body: string;
  /** The name of a sound in the app */
  sound?: string;
};

export type TemplateVersion = {
  name: string;
  version: number;
};

export type RecipientList = {
  kind: RecipientKind;
  /** How many came with the request */
  lines?: number;
  /** They are uploaded as a file */
  upload?: true;
};

export type RecipientKind = Open<"user" | "device" | "token">;

export type RolloutState = {
  /** A first part of the audience, chosen by chance; absent: none */
  canary?: {
    /** Which share of the audience gets it first */
    share: number;
    /** How long the others wait, from its beginning; absent: `10m` */
    wait?: string;
  };
  /** How many devices are released a minute, give or take a 4096th of the audience; at least as many as reach all of them in 400 minutes. A change may only lower it */
  per_minute?: number;
  /** It is paused when more devices failed, judged from 50 outcomes on; absent: never */
  stop_if?: {
    /** The share of devices that failed, of those with an outcome */
    failed: number;
    /** Devices whose app is gone count as failed, too; absent: they do not */
    unregistered?: true;
  };
  phase: RolloutPhase;
  /** Why the phase is `held` */
  held?: HeldReason;
  /** How many devices it has, estimated; absent: not known yet */
  audience?: number;
  /** Devices that were released so far */
  released: number;
  /** Devices a minute of the last part; absent: no part has ended */
  rate?: number;
  /** When the next part begins; absent: none waits */
  next_at?: string;
  /** Devices that were accepted or failed */
  outcomes: number;
  /** Devices of these that count as failed */
  failed: number;
};

/** `waiting`: for its time, or that of the others behind the canary. `held`: it goes on when devices that were released have an outcome */
export type RolloutPhase = Open<"waiting" | "canary" | "rolling" | "held" | "done">;

/** `provider-paused`: devices wait because their provider is paused. `throttled`: devices are sent to more slowly than they are released. `few-outcomes`: fewer than 50 devices have an outcome by which to judge */
export type HeldReason = Open<"provider-paused" | "throttled" | "few-outcomes">;

/** `devices` = `accepted` + `failed` + `expired` + `cancelled` + `skipped` + `pending`, always */
export type NotificationCounts = {
  devices: number;
  accepted: number;
  failed: number;
  expired: number;
  cancelled: number;
  skipped: number;
  pending: number;
  opened: number;
  /** Accepted devices that were asked to report that the push arrived */
  receipts_asked: number;
  /** Devices whose app ran with this push; not that a person saw it. May exceed `receipts_asked` */
  received: number;
  /** Devices whose user dismissed it; iOS: explicitly */
  dismissed: number;
  /** Opens by the button that was pressed; absent: none */
  buttons?: Record<string, number>;
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

export type Wave = {
  /** When it begins */
  at: string;
  status: WaveStatus;
  /** The time zones whose clocks then show the local time; `none`: devices without a time zone */
  time_zones: string[];
  /** Absent until it has been addressed */
  devices?: number;
};

/** `sent`: all its devices are addressed; their results may follow. `skipped`: its devices get nothing, because their clocks had passed the time */
export type WaveStatus = Open<"scheduled" | "sending" | "sent" | "skipped">;

export type Approval = {
  status: Open<"proposed" | "approved" | "rejected" | "expired" | "cancelled">;
  /** Sends to more devices need approval */
  limit: number;
  /** The devices that it would reach, estimated; of an upload its recipients, once it is complete. Absent: not known, registry did not answer */
  devices?: number;
  sender: Author;
  /** When it is cancelled unless it was approved */
  expires_at: string;
  /** Who approved or rejected it */
  by?: Author;
  at?: string;
  reason?: string;
};

export type Author = {
  id: string | string | "root";
  /** Of an operator */
  name?: string;
};

/** Since when nothing is sent, and who paused it */
export type Pause = {
  at: string;
  /** Absent: its rollout stopped by itself */
  by?: Author;
  reason?: string;
};

export type SharedContent = {
  /** The first line. iOS: `aps.alert.title`. Android: `notification.title`. Web: `notification.title`. `title` or `body` is required unless `silent` is true */
  title?: string;
  /** The text below the title. iOS: `aps.alert.body`. Android: `notification.body`. Web: `notification.body` */
  body?: string;
  /** What a tap opens: an absolute URL, or a path inside the app. All platforms get it as the payload's `link_to`, and the app opens it. Refused: `javascript:`, `data:`, `vbscript:`, `blob:` and paths that begin with `//`, however they are written */
  link_to?: string;
  /** https URL of a picture. iOS: the payload's `image`, with `mutable-content`, so that the app's notification service extension can download it. Android: FCM shows it. Web: `notification.image` */
  image?: string;
  /** Only devices that name this app get it. Absent: devices of every app. For those that name none, send to `condition:!exists(app)` */
  app?: string;
  /** Text values for the app, by name. iOS and web: the payload's `data`. Android: entries of FCM's `data`. Refused: names that FCM reserves (`from`, `message_type`, and all that begin with `google.` or `gcm.`), and Herald's own `notification_id`, `project_id`, `token`, `herald`, `receipt` and `aps`, and `link_to`, `thread`, `app_badge` and `buttons` beside the field of the notification */
  data?: Record<string, string>;
  /** The number on the app's icon; 0 removes it. iOS: `aps.badge`. Android: `notification_count`, which some launchers show. Web: the payload's `app_badge`, which the service worker may set */
  badge?: number;
  /** https URL of a small one-coloured image that stands for the app in Android's status bar. Web: `notification.badge`. iOS and Android apps ignore it */
  badge_image?: string;
  /** https URL of an image that stands for the sender. Web: `notification.icon`. iOS and Android apps ignore it */
  icon?: string;
  /** iOS: `aps.sound`, `default` or a sound file in the app. Android: `notification.sound`, for versions without notification channels. Web: `notification.sound`, which browsers ignore today. Absent: no sound on iOS, the device's setting elsewhere */
  sound?: string;
  /** iOS: `aps.category`, a notification category that the app registered; its buttons are shown. Web: `notification.category`, for the service worker. Android ignores it */
  category?: string;
  /** Android: the action of the intent filter whose activity a tap starts; absent: the app's launcher activity. iOS and web ignore it */
  click_action?: string;
  /** How much it may interrupt. iOS: `aps.interruption-level`; `time-sensitive` and `critical` need Apple's entitlements, and `critical` plays `sound`, or the default sound, even if the device is muted. Android: `notification_priority` `PRIORITY_LOW`, `PRIORITY_DEFAULT`, `PRIORITY_HIGH` or `PRIORITY_MAX`, for versions without notification channels. Web: `Urgency` `low`, `normal`, `high` or `high`, instead of that of `priority`. Silent notifications ignore it */
  urgency?: Open<"passive" | "active" | "time-sensitive" | "critical">;
  /** How important it is among the app's notifications, from 0 to 1. iOS: `aps.relevance-score`, which orders its summary. Android and web ignore it */
  relevance?: number;
  /** Notifications with the same thread are grouped. iOS: `aps.thread-id`. Android: `data.thread`, for an app that groups them. Web ignores it */
  thread?: string;
  /** Android: the id of the notification channel, which the app has created; absent or unknown: the channel that the app's manifest names. iOS and web ignore it */
  android_channel?: string;
  /** The share of the devices that are asked to report that the push arrived: `true` or 1: all; absent: the project's `receipts`. Asks devices that registered the capability `receipts`. Android: only with the capability `draws` and `priority` `high`, because the app must draw the notification then: a phone on which the app was force-stopped, or that its vendor restricts, shows nothing of it, so asking may lower delivery there. Silent notifications are not asked */
  receipts?: boolean | number;
  /** Up to three buttons, for devices that registered the capability `buttons`; Android: with `draws` and `priority` `high`. Not with `category` or `silent`. A press is an open with `button` */
  buttons?: {
    id: string;
    title: string;
    /** What a tap opens: an absolute URL, or a path inside the app. All platforms get it as the payload's `link_to`, and the app opens it. Refused: `javascript:`, `data:`, `vbscript:`, `blob:` and paths that begin with `//`, however they are written */
    link_to?: string;
    /** `false`: the press is reported and the app stays closed; not with `link_to` */
    opens?: boolean;
    /** Shown as a warning where the platform can */
    destructive?: boolean;
  }[];
  /** True: wakes the app and shows nothing. iOS: a background push, which the system may delay or drop. Android: a data message with normal priority. Web: a payload without `notification`; most browsers show a notice of their own when a service worker shows none */
  silent?: boolean;
  /** `high` (the default) delivers at once, `normal` when it suits the battery. iOS: `apns-priority` 10 or 5. Android: `HIGH` or `NORMAL`. Web: `Urgency` `high` or `normal`, unless `urgency` says otherwise. Silent notifications are always `normal` */
  priority?: Open<"high" | "normal">;
  /** How long the notification is worth delivering, in seconds from acceptance, `send_at` or the beginning of its wave; at most 28 days. Devices that are not reached by then count as `expired`. Providers keep it for devices that are offline: `apns-expiration`, FCM's `ttl`, Web Push's `TTL` */
  ttl?: number;
  /** A later notification with the same id replaces an earlier one on the screen. iOS: `apns-collapse-id`. Android: `tag` and `collapse_key`. Web: `tag` and `Topic`, which has a hash of an id that is not base64url. Absent: the notification's own id, so only a repeat of it is replaced. The push that arrives last replaces the others, and pushes sent within a second may arrive in any order: send the next one after `io.herald.delivery.accepted.v1` of the one before, or put a version into `data` and let the app drop older ones. Updates of a Live Activity are in order */
  collapse_id?: string;
  /** What sort of message it is, as a slug. Devices do not get it; lists, events, webhooks and statistics are by kind */
  kind?: string;
  /** What you call it in lists and statistics: at most 8 values by name. Devices do not get them; events, webhooks and statistics do. Use values that repeat, such as a campaign: a label has statistics of its first 1,000 values a month */
  labels?: Record<string, string>;
  /** Whose local time `send_at` is: an IANA time zone, or `device`, the zone of each device. Then it is sent in waves, one for each instant at which clocks of its devices show `send_at`, to the devices that are registered when the wave begins. A device that changes its zone meanwhile may get it twice (with the same collapse id) or not at all. A device without a zone has its project's `default_time_zone` */
  time_zone?: string;
  /** With `time_zone: "device"`, what happens to devices whose clocks have passed `send_at` already: `skip` them with the reason `past-local-time`, send `now`, or `tomorrow` at the same local time. Required once `send_at` has passed in some time zone */
  past?: Open<"skip" | "now" | "tomorrow">;
  /** `title`, `body`, `link_to`, `image` and titles of `buttons` by locale. A device gets those for its `identifiers.current_locale`, by what locales mean: `zh-Hant` is also for `zh-TW`, `es-419` for `es-MX`, `pt-BR` for `pt-PT` if nothing is nearer, but never another script; otherwise the notification's own. A field that a localization leaves out is the notification's own */
  localizations?: Record<
    string,
    {
      /** The first line. iOS: `aps.alert.title`. Android: `notification.title`. Web: `notification.title`. `title` or `body` is required unless `silent` is true */
      title?: string;
      /** The text below the title. iOS: `aps.alert.body`. Android: `notification.body`. Web: `notification.body` */
      body?: string;
      /** What a tap opens: an absolute URL, or a path inside the app. All platforms get it as the payload's `link_to`, and the app opens it. Refused: `javascript:`, `data:`, `vbscript:`, `blob:` and paths that begin with `//`, however they are written */
      link_to?: string;
      /** https URL of a picture. iOS: the payload's `image`, with `mutable-content`, so that the app's notification service extension can download it. Android: FCM shows it. Web: `notification.image` */
      image?: string;
      /** Titles of `buttons` by their ids */
      buttons?: Record<string, string>;
    }
  >;
  /** Merged over the APNs payload (JSON Merge Patch); `null` removes a field. Herald's own `notification_id`, `project_id`, `token`, `receipt` and `buttons` are reserved. iOS alone */
  ios?: Record<string, unknown>;
  /** Merged over FCM's `message` (JSON Merge Patch); `null` removes a field. Fields that FCM's HTTP v1 API does not have or would refuse are refused, and so are its target and `android.data`, which would replace Herald's values. Android alone */
  android?: Record<string, unknown>;
  /** Merged over the JSON that the service worker gets (JSON Merge Patch). Herald's own `notification_id`, `project_id`, `token`, `receipt`, `buttons` and `web_push` are reserved. Web alone */
  web?: Record<string, unknown>;
};

export type Platform = Open<"ios" | "android" | "web">;

export type DeliveryStatus = Open<"pending" | "accepted" | "failed" | "expired" | "cancelled" | "skipped">;

export type DeliveryOutcome = {
  platform: Platform;
  status: DeliveryStatus;
  /** The user that the device belonged to when the push was sent */
  user_id?: string;
  /** Why it was not accepted: a delivery reason (/docs/errors#reasons) */
  reason?: string;
  /** The provider's own words */
  provider_reason?: string;
  /** The provider's id of the push */
  provider_id?: string;
  /** The device may have received it twice */
  possible_repeat: boolean;
  /** How often it was sent, at most eight times. Sends that the provider certainly did not process do not count: it could not be reached, was unavailable, or limited its senders */
  attempts: number;
  at: string;
  /** The device was asked to report the arrival; absent: no */
  receipt_asked?: boolean;
  /** When its app ran with this push */
  received_at?: string;
  dismissed_at?: string;
  opened_at?: string;
  /** The button that opened it; absent: none */
  button?: string;
};

export type ActivityStatus = Open<"active" | "ended">;

export type ActivityChannel = {
  app: string;
  environment: ApnsEnvironment;
  /** The last one that Apple accepted for it; with `problem`: refused */
  version?: number;
  /** Why there is no channel (then the devices have tokens), or why the last state was refused: mostly Apple's word */
  problem?: string;
};

export type ApnsEnvironment = Open<"production" | "sandbox">;

export type ActivityFacts = {
  id: string;
  status: ActivityStatus;
  /** Increases with each state */
  version: number;
  /** The name of the app's `ActivityAttributes` */
  attributes_type: string;
  /** The `ActivityAttributes` of the app, which do not change. Herald adds `herald`, by which the app reports an open */
  attributes: Record<string, unknown>;
  /** The `ContentState` of the app's attributes, as the app decodes it. A Swift `Date` in it counts seconds from 2001, unless the app decodes a type of its own */
  content_state: Record<string, unknown>;
  /** Which of the app's activities iOS shows first: the highest */
  relevance?: number;
  ends_at: string;
  created_at: string;
  /** When its newest version was written */
  updated_at: string;
  ended_at?: string;
  dismiss_at?: string;
};

export type StatsFigures = {
  /** Devices whose provider accepted */
  sent: number;
  /** Devices that failed; expired and cancelled ones are not among them */
  failed: number;
  /** Devices that got nothing because of a rule, such as a cap */
  skipped: number;
  /** Devices that opened */
  opened: number;
  /** Devices of `sent` that were asked for a receipt */
  receipts_asked: number;
  /** Devices that reported the arrival */
  received: number;
  /** Devices whose user dismissed it */
  dismissed: number;
  /** `opened` / `sent`; null where nothing was sent, above 1 where earlier sends were opened */
  open_rate: number | null;
};

export type Device = {
  id: string;
  /** Complete for the scopes `devices` and `export`, and for the device itself; for others `…` and its last eight characters, because an app identifies itself by it */
  token: string;
  platform: Platform;
  /** Which provider gave the push token. Default: the platform's own (`apns` for ios, `fcm` for android, `webpush` for web). `fcm` serves every platform */
  provider?: Provider;
  installation_id?: string;
  /** The app that gave the push token: its bundle id or package. Absent: the `bundle_id` of the APNs settings; other providers need none. On ios, pushes to an app that is neither `bundle_id` nor in `bundle_ids` fail with `app-not-configured` */
  app?: string;
  metadata: Record<string, unknown>;
  /** What the app says of its installation. Herald itself reads `current_time_zone` (IANA, such as `Europe/Berlin`; also sent as `time_zone` or `timezone`) and `current_locale` (BCP 47; also sent as `locale` or `language`), and stores them under these names */
  identifiers: Record<string, unknown>;
  status: DeviceStatus;
  /** Why it is inactive. `unregistered`: its provider says that the token is not in use any more; `token-invalid`: its provider says that it is no token; `endpoint-forbidden`: Herald may never send to its Web Push endpoint; `requested`: by a request; `stale`: not seen for the project's `stale_after` */
  inactive_reason?: InactiveReason;
  topics: string[];
  environment?: ApnsEnvironment;
  /** Tokens of Apple's push types, with which `push_type` reaches the device. Absent: none */
  tokens?: FurtherToken[];
  token_kind?: FcmTokenKind;
  /** What the app's kit can do; absent: nothing */
  capabilities?: string[];
  /** Web Push: the key that the subscription was made with */
  vapid_key_id?: string;
  /** The user of the device; null: none */
  user_id: string | null;
  /** When its user was last set */
  identified_at?: string;
  /** When its app last registered, logged in, wrote metadata or opened a notification; stored at most once a day */
  last_seen_at?: string;
  /** When a notification was last opened on it, to within a day; absent: none was */
  last_opened_at?: string;
  created_at: string;
  updated_at: string;
};

export type Provider = Open<"apns" | "fcm" | "webpush">;

export type DeviceStatus = Open<"active" | "inactive">;

export type InactiveReason = Open<"unregistered" | "token-invalid" | "endpoint-forbidden" | "requested" | "stale">;

export type FurtherToken = {
  type: TokenType;
  /** Of controls: their kind; of `liveactivity`: the type of the attributes; of `activity`: its id */
  name?: string;
  /** Shown whole where the device's `token` is */
  token: string;
  /** Absent: the device's */
  environment?: ApnsEnvironment;
  /** Of `liveactivity`: a start may name a broadcast channel */
  channels?: true;
  /** When the app last sent it */
  registered_at: string;
};

export type TokenType = Open<
  | "voip"
  | "complication"
  | "widgets"
  | "controls"
  | "location"
  | "fileprovider"
  | "pushtotalk"
  | "liveactivity"
  | "activity"
>;

export type FcmTokenKind = Open<"token" | "fid">;

export type PutDeviceResult =
  | {
      result: Open<"created" | "updated" | "unchanged">;
      id: string;
    }
  | {
      result: "refused";
      problems: FieldProblem[];
    };

export type FieldProblem = {
  /** Into the body, an RFC 6901 JSON pointer such as `#/notification/title`; else the name of the parameter or header. Absent where the whole request is meant */
  pointer?: string;
  /** What is wrong, and what would be accepted */
  detail: string;
  /** Stable: `required`, `unknown-field`, `invalid-type`, `invalid-value`, `invalid-format`, `too-short`, `too-long`, `too-small`, `too-large`, `too-few`, `too-many`, `repeated`, `more-problems`, or the slug of `type`. New codes may come */
  code: string;
};

export type Import = {
  id: string;
  format: ImportFormat;
  dry_run: boolean;
  /** `uploading`: lines are missing; if the upload broke, continue it after `lines_stored`. `processing`: Herald has the whole file */
  status: Open<"uploading" | "processing" | "completed">;
  /** Lines that Herald has received, with header and blank lines */
  lines_stored: number;
  lines_processed: number;
  created: number;
  updated: number;
  unchanged: number;
  refused: number;
  /** Of the refused lines, those for which Herald has no provider: email, SMS, and platforms such as Huawei or Windows */
  unsupported: number;
  /** How many of the lines that are not refused gave the device this */
  lines_with: {
    user_id: number;
    time_zone: number;
    locale: number;
    last_seen_at: number;
  };
  /** Fields with values that devices did not get. At most 200, those of the most lines first. Absent in lists, and until the import is completed */
  unused?: UnusedField[];
  /** Fields that are stored under another name: a key has no `.` or `$`, and belongs to one field. At most 200, those of the most lines first. Absent in lists, and until the import is completed */
  renamed?: RenamedField[];
  /** Errors beyond the 10,000 that an import keeps */
  errors_left_out: number;
  created_at: string;
};

/** Whose export the file is */
export type ImportFormat = Open<
  "herald" | "pinpoint" | "sns" | "onesignal" | "firebase" | "parse" | "azure-nh" | "pnta"
>;

export type UnusedField = {
  /** As the file names it; of nested fields the path, such as `Demographic.Make` */
  field: string;
  /** `unknown`: no field of a device corresponds to it. `invalid`: its value is not valid, such as a time zone that is not an IANA name, and was left out. More may come */
  reason: Open<"unknown" | "invalid">;
  lines: number;
};

export type RenamedField = {
  /** As the file names it; of nested fields the path, such as `Demographic.Make` */
  field: string;
  /** The path in the device. A number at its end keeps apart what would otherwise have the same name */
  name: string;
  lines: number;
};

export type LineError = {
  /** Counted from 1. In CSV a line is a row, and the header is row 1 */
  line: number;
  /** Of the line's device or recipient; empty: the whole line */
  field: string;
  reason: string;
  code: string;
};

export type Recipients = {
  kind: RecipientKind;
  /** Lines that Herald has read, with header and blank lines */
  lines_stored: number;
  /** Lines that were accepted */
  recipients: number;
  /** Recipients whose devices were found */
  processed: number;
  refused: number;
  /** Lines whose target an earlier line has */
  duplicates: number;
  /** Processed recipients without an active device */
  unmatched: number;
  /** Errors beyond the 10,000 that are kept */
  errors_left_out: number;
  /** Herald has all lines. False at the end: 24 hours passed without a line, or the notification was cancelled or expired */
  complete: boolean;
  /** Of `dry_run=true` alone: its first errors, by line */
  errors?: LineError[];
};

export type ExportedDevice = Device & {
  /** Only with `include=keys` */
  keys?: WebPushKeys;
};

export type WebPushKeys = {
  p256dh: string;
  auth: string;
};

export type ExportedDelivery = {
  /** Of the row, for `after` */
  id: string;
  notification_id: string;
  device_id: string;
  platform: Platform;
  status: DeliveryStatus;
  /** The user that the device belonged to when the push was sent */
  user_id?: string;
  /** Why it was not accepted: a delivery reason (/docs/errors#reasons) */
  reason?: string;
  /** The provider's own words */
  provider_reason?: string;
  /** The provider's id of the push */
  provider_id?: string;
  /** The device may have received it twice */
  possible_repeat: boolean;
  /** How often it was sent, at most eight times. Sends that the provider certainly did not process do not count: it could not be reached, was unavailable, or limited its senders */
  attempts: number;
  at: string;
  /** The device was asked to report the arrival; absent: no */
  receipt_asked?: boolean;
};

export type ExportedOpen = {
  /** The id of the row, for `after`: notification and device */
  id: string;
  notification_id: string;
  device_id: string;
  platform?: Platform;
  opened_at: string;
  /** The button that was pressed; absent: none */
  button?: string;
};

export type ExportedReceipt = {
  /** Of the row, for `after`: notification, device, and `r` or `d` */
  id: string;
  notification_id: string;
  device_id: string;
  platform: Platform;
  kind: Open<"received" | "dismissed">;
  at: string;
};

export type Preferences = {
  /** Every kind that the project declares, by name */
  kinds: KindPreference[];
  /** Of the user; absent: none, or a device */
  quiet_hours?: OwnQuietHours;
};

export type KindPreference = {
  /** What sort of message it is, as a slug. Devices do not get it; lists, events, webhooks and statistics are by kind */
  kind: string;
  title: string;
  /** Whether the kind is sent to the device, or to devices of the user */
  on: boolean;
  /** It is always on */
  critical: boolean;
  /** Whose choice `on` is. Off beats on, and on beats the default */
  set_by: Open<"device" | "user" | "default">;
};

export type OwnQuietHours = {
  /** Of the device's time zone */
  from: string;
  /** The first minute after them; before `from`: on the next day */
  to: string;
};

export type User = {
  user_id: string;
  /** At most 100 of them, oldest first */
  devices: Device[];
  /** All of them */
  device_count: number;
  /** When one of these devices last changed or was identified */
  last_seen_at: string;
};

export type UserSummary = {
  user_id: string;
  /** Their devices, counted up to 1000 */
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
  /** Subscribed devices; above 10,000 at most 10 s old, or 20 times as old as it took to count them */
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

export type Template = {
  name: string;
  /** The version that sends use; absent: none yet */
  published?: number;
  published_at?: string;
  /** The draft differs from the published version */
  changed: boolean;
  /** When the draft was last stored */
  updated_at: string;
  /** The version of `content` */
  version: "draft" | number;
  /** Who wrote the draft, or published the version */
  author: Author;
  content: TemplateContent;
};

/** The fields of a notification without `targets` and `send_at`. `title`, `body`, `link_to`, `image` and the values of `data` are Liquid: they show the declared variables, `device.metadata.<path>`, `device.identifiers.<path>` and `user.id` */
export type TemplateContent = SharedContent & {
  variables?: Record<string, DeclaredVariable>;
  /** The language of the texts outside `localizations`, for their dates, numbers and plurals; absent: `en` */
  locale?: string;
};

export type TemplateSummary = {
  name: string;
  /** The version that sends use; absent: none yet */
  published?: number;
  published_at?: string;
  /** The draft differs from the published version */
  changed: boolean;
  /** When the draft was last stored */
  updated_at: string;
};

export type PublishedVersion = {
  version: number;
  author: Author;
  published_at: string;
};

export type TemplatePreview = {
  ios: PlatformPreview;
  android: PlatformPreview;
  web: PlatformPreview;
  /** For Android apps that draw the notification themselves; present with receipts or buttons */
  drawn?: PlatformPreview;
};

export type PlatformPreview = {
  payload: Record<string, unknown>;
  bytes: number;
  /** Why the provider would refuse it; empty: it would not */
  problems: string[];
};

export type Notification = SharedContent & {
  id: string;
  status: NotificationStatus;
  /** Who gets it: each entry names a set of devices, and the notification goes once to every active device of any of them. `topic:news`, `user:u_8412`, `device:dev_…`, `token:<push token>`, `metadata:plan=pro`, `identifiers:current_locale=de`, `condition:<expression>` or `all` */
  targets: string[];
  /** So many seconds after the start, `io.herald.notification.unopened.v1` names the users who have not opened it. Only with targets `user:`, `device:` and `token:`; not with `recipients`, `rollout`, `silent` or `time_zone: "device"` */
  escalate_after?: number;
  /** Apple's push type. Absent: an alert or a background push. It goes to iPhones that have a token of this type; `data` and `ios` are its payload, and no field that shows something is accepted beside it. `voip` may have 5,120 bytes; `voip` and `pushtotalk` have a `ttl` of 0 unless you set one. `liveactivity`: of an activity */
  push_type?: PushType;
  /** The kind of the control that a push of the type `controls` updates */
  push_name?: string;
  /** The Live Activity that it starts, updates or ends, with its state; absent: none. iOS alone */
  activity?: ActivityPush;
  /** The template that its texts and settings are from; absent: none. Devices do not get it */
  template?: TemplateVersion;
  /** It has recipients with values of their own, and no targets. Devices do not get it */
  recipients?: RecipientList;
  /** When to send it, at most 30 days ahead: a time with offset, or without one beside `time_zone`. Absent or past: now. Where clocks skip a local time, the first instant after the gap; where they show it twice, the first */
  send_at?: string;
  /** Absent: it reaches all devices at once */
  rollout?: RolloutState;
  counts: NotificationCounts;
  /** At most 10 s behind; in the answers to reads alone */
  opens?: NotificationOpens;
  /** Failed devices by reason */
  failures: Record<string, number>;
  /** Skipped devices by reason */
  skips: Record<string, number>;
  /** Targets that matched no active device */
  unmatched: string[];
  /** Its waves, the next ones as they are planned now; absent unless it is sent in waves */
  schedule?: Wave[];
  /** Absent: it needs none */
  approval?: Approval;
  /** Absent: it is not paused */
  paused?: Pause;
  created_at: string;
  completed_at?: string;
};

export type SentNotification =
  | {
      id: string;
    }
  | {
      /** Why this one was not accepted */
      errors: string[];
    };

export type Delivery = DeliveryOutcome & {
  device_id: string;
};

export type DeviceNotification = DeliveryOutcome & {
  notification: {
    id: string;
    status: NotificationStatus;
    /** The first line. iOS: `aps.alert.title`. Android: `notification.title`. Web: `notification.title`. `title` or `body` is required unless `silent` is true */
    title?: string;
    /** The text below the title. iOS: `aps.alert.body`. Android: `notification.body`. Web: `notification.body` */
    body?: string;
    created_at: string;
  };
};

export type DeliveryTrace = {
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
  /** The user that the device belonged to when the push was sent */
  user_id?: string;
  attempts: DeliveryAttempt[];
  next_attempt_at?: string;
  /** The device was asked to report the arrival; absent: no */
  receipt_asked?: boolean;
  /** When its app ran with this push */
  received_at?: string;
  dismissed_at?: string;
  opened_at?: string;
  /** The button that opened it; absent: none */
  button?: string;
  /** What happened, in sentences, oldest first; why the device got nothing, if it did not */
  explanation: string[];
};

export type DeliveryAttempt = {
  /** The number of the attempt; absent: nothing was sent, or the provider certainly did not process it */
  attempt?: number;
  at: string;
  /** `deferred` and `unknown` are tried again; `blocked`: not sent, because the provider's server fails, cannot be reached or limits its senders; `delayed`: not sent, because of quiet hours; `sending`: no answer is known yet */
  outcome: Open<
    | "accepted"
    | "failed"
    | "deferred"
    | "unknown"
    | "paused"
    | "blocked"
    | "delayed"
    | "expired"
    | "cancelled"
    | "skipped"
    | "sending"
  >;
  /** When quiet hours end that delay it, or that outlast its time to live; absent: no such hours */
  until?: string;
  /** Why it was not accepted: a delivery reason (/docs/errors#reasons) */
  reason?: string;
  /** The provider's own words */
  provider_reason?: string;
  /** The provider's id of the push */
  provider_id?: string;
  /** The device may have received it twice */
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
  /** The waves in which it would be sent; absent unless it would be sent in waves */
  schedule?: PlannedWave[];
  /** Absent unless it has a rollout */
  rollout?: PlannedRollout;
  /** Of these devices, those that would get nothing, by reason, as they are now; absent unless the project has rules for such a send or it would be sent in waves */
  skips?: Record<string, number>;
  /** Of these devices, those that quiet hours would delay at the time of the send; absent as `skips` */
  delayed?: PlannedDelay[];
  /** Rules that apply to the send and are evaluated only when it is sent; absent as `skips` */
  evaluated_later?: Open<"frequency-cap">[];
  /** One payload for each platform that has devices, with placeholders for device and open token; for a device with all capabilities. `drawn`: the message for Android apps that draw it themselves, present with receipts or buttons */
  rendered: {
    ios?: unknown;
    android?: unknown;
    web?: unknown;
    drawn?: unknown;
  };
  /** The size of each of these, for a device without a localization, and what its provider takes */
  sizes: {
    ios?: {
      bytes: number;
      max: number;
    };
    android?: {
      bytes: number;
      max: number;
    };
    web?: {
      bytes: number;
      max: number;
    };
    drawn?: {
      bytes: number;
      max: number;
    };
  };
};

export type PlannedWave = {
  at: string;
  devices: number;
};

export type PlannedRollout = {
  /** Absent: it has no canary */
  canary_devices?: number;
  /** How long it takes at least */
  minutes: number;
};

export type PlannedDelay = {
  /** When they would get it */
  until: string;
  /** A delivery reason (/docs/errors#reasons) */
  reason: string;
  devices: number;
};

export type Stats = {
  /** Start of the first interval */
  from: string;
  /** End of the last interval */
  to: string;
  interval: Open<"hour" | "day">;
  time_zone: string;
  series: (StatsFigures & {
    /** Start of the interval */
    at: string;
  })[];
  totals: StatsFigures & {
    /** `failed` by reason */
    failures: Record<string, number>;
    /** `skipped` by reason */
    skips: Record<string, number>;
  };
  /** With `by`: totals of the range, most sent first; at most 1000. A notification without the label or kind is in none, and one to two topics is in both */
  groups?: (StatsFigures & {
    value: string;
  })[];
  /** With `by`: the values beyond the limit, counted together. `values` names up to 100 of them. A month has statistics of the first 1,000 kinds, 100 labels, and 1,000 values of each label */
  other?: StatsFigures & {
    values: string[];
  };
  /** The kind or label that was asked for has no statistics of its own in part of the range: it is beyond the limit */
  limit_reached?: true;
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
  /** Event types that it gets; null: all */
  events: string[] | null;
  description?: string;
  enabled: boolean;
  disabled_reason?: DisabledReason;
  disabled_at?: string;
  /** Since then no attempt has succeeded */
  failing_since?: string;
  /** Until then messages are also signed with the previous secret */
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
  /** Why the last attempt failed */
  last_error?: string;
  next_attempt_at?: string;
};

export type WebhookMessageStatus = Open<"waiting" | "delivered" | "failed">;

export type WebhookMessageDetail = WebhookMessage & {
  payload: EventMessage;
  attempts: WebhookAttempt[];
};

export type EventMessage = {
  /** The event's id (`ce-id`): a repeated event has the same */
  id: string;
  /** The event's type (`ce-type`). Later versions add types */
  type: string;
  /** When it happened */
  timestamp: string;
  /** The event's fields, as in /docs/events */
  data: Record<string, unknown>;
};

export type WebhookAttempt = {
  at: string;
  duration_ms: number;
  /** HTTP status; absent where no answer came */
  status?: number;
  /** Why it failed; absent: it succeeded */
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
  /** Names the project in files and scripts, where ids differ between installations. Unique, and fixed once it is set */
  key?: string;
  name: string;
  open_registration: boolean;
  /** Paths that clients may not write */
  protected_metadata: string[];
  /** Devices that were not seen for so long become inactive, with the reason `stale`; the next registration activates them. Absent: never */
  stale_after?: string;
  /** The share of the devices that a notification without `receipts` asks to report that it arrived; `false`: none. On Android, asking may lower delivery, see `receipts` of a notification */
  receipts: boolean | number;
  /** When devices get no notification, in the time zone of each. A kind may have its own; kinds that are critical, and silent notifications, pass. Absent: never */
  quiet_hours?: QuietHours;
  /** The time zone of devices that name none: an IANA name */
  default_time_zone: string;
  /** Sends to more devices are proposed, and wait until an operator other than their sender approves them. Only an admin of the installation may raise the number or remove it. Absent: none wait */
  approval?: ApprovalRule;
  /** Its sends wait; absent: they do not */
  paused?: ProjectPause;
  created_at: string;
};

export type QuietHours = {
  /** Of the device's time zone */
  from: string;
  /** The first minute after them; before `from`: on the next day */
  to: string;
  /** `delay`: devices get the notification when they end */
  mode: Open<"delay" | "skip">;
};

export type ApprovalRule = {
  /** Sends to more devices are proposed, and wait for approval */
  devices: number;
};

/** Since when nothing is sent, and who paused it */
export type ProjectPause = {
  at: string;
  by: Author;
  reason?: string;
  /** When it resumes by itself; absent: when somebody resumes it */
  until?: string;
  /** `installation`: all projects are paused */
  of: Open<"project" | "installation">;
};

export type Installation = {
  /** All sends are paused; absent: they are not */
  paused?: ProjectPause;
};

export type ProjectLimit = {
  /** Where a response has `RateLimit-Policy`, the name in it */
  name: Open<
    | "token"
    | "project"
    | "device"
    | "sends"
    | "dry-runs"
    | "queued"
    | "queued-bytes"
    | "event-streams"
    | "exports"
    | "devices"
  >;
  /** What it counts, for people */
  description: string;
  /** For all gateways together */
  limit: number;
  /** Without a limit of its own */
  default: number;
  /** The window in which it counts. Absent: at any time */
  seconds?: number;
  /** How much of it is in use. Absent where each token or device has a count of its own, or if unknown now */
  used?: number;
  /** `gateway`: each gateway counts its part, the limit divided by the live gateways; `used` is the count of the one that answers */
  counted_by: Open<"gateway" | "installation">;
  /** The environment variable that sets the default. Absent: the default is fixed */
  variable?: string;
};

export type DeclaredKind = {
  /** What sort of message it is, as a slug. Devices do not get it; lists, events, webhooks and statistics are by kind */
  kind: string;
  /** What people read where they switch it off */
  title: string;
  /** Whether devices get it that have no preference for it */
  on_by_default: boolean;
  /** People cannot switch it off, and neither quiet hours nor a cap apply: for what they must know, such as a security alert */
  critical: boolean;
  /** Instead of the project's; `null`: none. Absent: the project's */
  quiet_hours?: QuietHours | null;
  frequency_cap?: FrequencyCap;
};

/** The maximum of notifications of the kind that a person gets in an hour, a day or a week from Monday, in the project's time zone. A device without a user counts alone */
export type FrequencyCap = {
  count: number;
  per: Open<"hour" | "day" | "week">;
};

export type ProjectToken = {
  id: string;
  name: string;
  scopes: Scope[];
  expires_at?: string;
  /** The first 16 hex digits of the token's SHA-256 */
  fingerprint?: string;
  created_at: string;
};

export type Scope = Open<"send" | "read" | "devices" | "export" | "templates">;

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
  /** SHA-256 of the settings as they were last put, as JSON with sorted keys: it changes with every field, secrets too */
  fingerprint?: string;
  status: Open<"active" | "paused">;
  /** The provider's code, and its own words if it gave any */
  paused_reason?: string;
  /** What to check */
  paused_detail?: string;
  /** When Herald tries one of the waiting pushes, and resumes the provider if it accepts. Absent: new settings alone resume it */
  next_trial_at?: string;
  /** Absent when there is none. Pushes wait and are tried again; new settings send them at once */
  problems?: ProviderProblem[];
  updated_at: string;
};

export type ProviderProblem = {
  /** One of certificate-untrusted, certificate-name, certificate-expired, tls-refused, no-http2, name-not-found, connection-refused, connection-timeout, not-the-provider, proxy-unreachable, proxy-refused, proxy-failed, credential-unproven; more may come */
  reason: string;
  /** The server that was not reached */
  host?: string;
  /** What happened, and what to check */
  detail: string;
  since: string;
};

export type Activity = ActivityFacts & {
  start: boolean;
  /** Only devices that name this app */
  app?: string;
  /** Devices whose start token says `channels` follow a broadcast channel of Apple: a new state is one request for all of them. The others have tokens */
  via?: "channel";
  /** What sort of message it is, as a slug. Devices do not get it; lists, events, webhooks and statistics are by kind */
  kind?: string;
  /** What you call it in lists and statistics: at most 8 values by name. Devices do not get them; events, webhooks and statistics do. Use values that repeat, such as a campaign: a label has statistics of its first 1,000 values a month */
  labels?: Record<string, string>;
  /** When the state is out of date: the app may show it so */
  stale_at?: string;
  /** `high` (`apns-priority` 10) for a start, an end and an alert, else `normal` (5), which does not count towards Apple's budget */
  priority?: Open<"high" | "normal">;
  /** Who gets it: each entry names a set of devices, and the notification goes once to every active device of any of them. `topic:news`, `user:u_8412`, `device:dev_…`, `token:<push token>`, `metadata:plan=pro`, `identifiers:current_locale=de`, `condition:<expression>` or `all` */
  targets: string[];
  sequence?: number;
  /** Its broadcast channels. Apple gives no result per device, so no count includes their devices */
  channels?: ActivityChannel[];
  /** The notification that sends the newest version */
  notification_id: string;
};

export type ActivityVersion = {
  id: string;
  /** Increases with each state */
  version: number;
  /** The notification that sends this version */
  notification_id: string;
};

export type DeviceActivity = ActivityFacts & {
  /** Seconds since 1970, as in the push of this version */
  timestamp: number;
  stale_at?: string;
  /** With `via`: the channel with which the app starts it */
  channel_id?: string;
};

export type TestedPush = {
  /** More may come */
  result: Open<
    "accepted" | "token-refused" | "credential-refused" | "message-refused" | "try-later" | "not-reached" | "no-answer"
  >;
  /** The provider's own word, or what kept Herald from reaching it; absent: it gave none */
  provider_reason?: string;
  /** The provider's id of the message, where it gave one */
  provider_id?: string;
  /** What this means and what to check, in one or two sentences */
  detail: string;
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

export type Operator = {
  id: string;
  name: string;
  role: OperatorRole;
  projects: ProjectGrant[];
  /** As the identity provider names it */
  email?: string;
  /** Groups of the groups file at the last sign-in; their roles are added. Absent: never signed in by the identity provider */
  groups?: string[];
  /** What the operator may do: `role` and `projects` together with those of its groups */
  effective?: {
    role: OperatorRole;
    projects: ProjectGrant[];
    /** The groups that `role` comes from; empty: it is the operator's own */
    groups: string[];
  };
  created_at: string;
  /** When its token was last replaced; absent: never */
  rotated_at?: string;
  /** When all its sessions were last ended; absent: never */
  signed_out_at?: string;
};

export type OperatorRole = Open<"member" | "viewer" | "operator" | "admin">;

export type ProjectGrant = {
  id: string;
  role: ProjectRole;
  /** May approve sends of others; admins of the installation may, too */
  approve?: true;
};

export type ProjectRole = Open<"viewer" | "operator" | "admin">;

export type Session = {
  operator: SignedInOperator;
  /** Send it as `Herald-Csrf` with every change that uses the session cookie */
  csrf_token?: string;
  expires_at: string;
};

export type SignedInOperator = {
  /** `root`: the holder of HERALD_ADMIN_TOKEN */
  id: string | "root";
  name: string;
  role: OperatorRole;
  projects: ProjectGrant[];
};

export type CurrentSession = {
  operator: SignedInOperator;
  /** Send it as `Herald-Csrf` with every change that uses the session cookie */
  csrf_token?: string;
  expires_at?: string;
};

export type SignInCode = {
  code: string;
  expires_at: string;
};

export type SignedOut = {
  /** Ends the session at the identity provider too: open it in the browser */
  logout_url: string;
};

export type AuditRow = {
  /** 1 for the first row; without gaps */
  sequence: number;
  event_id: string;
  operator: AuditedOperator;
  /** The operationId of the route; `resumeProvider`: Herald resumed a provider that accepts the credential again */
  action: string;
  project_id?: string;
  target: string;
  /** Empty when Herald itself acts */
  address: string;
  request_id?: string;
  /** What was there, without secrets */
  before?: Record<string, unknown> | null;
  /** The fields that the request set, secrets masked; under `/api/v1` only their names, as `fields` */
  after?: Record<string, unknown> | null;
  at: string;
  previous_hash: string;
  hash: string;
};

export type AuditedOperator = {
  /** `root`: the holder of HERALD_ADMIN_TOKEN; `unknown`: someone whose sign-in was refused; `herald`: Herald itself */
  id: string | "root" | "unknown" | "herald";
  name: string;
  role: OperatorRole;
};

export type AuditCheck = {
  valid: boolean;
  /** Rows that were checked by this request */
  checked: number;
  /** The first row that breaks the chain */
  problem?: {
    sequence: number;
    detail: string;
  };
  /** The last checked row. Keep it elsewhere to prove later that no row before it has changed */
  head: {
    sequence: number;
    hash: string;
  } | null;
  /** `after` of the next request; null: all rows are checked */
  next: string | null;
  /** The last row that `HERALD_REGISTRY_AUDIT_RETENTION` removed. The chain is checked from the row after it on */
  removed?: {
    sequence: number;
    at: string;
  };
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

export type SystemStatus = {
  at: string;
  /** The broker as the gateway sees it. While it is unavailable no service can report */
  broker: {
    available: boolean;
    reason?: string;
  };
  /** All four, also those that do not report */
  services: ServiceStatus[];
  /** As their services measured them, within the last 15 s */
  streams: {
    name: string;
    messages: number;
    bytes: number;
    /** -1: unlimited */
    max_bytes: number;
    measured_at: string;
  }[];
  durables: {
    name: string;
    /** Messages that wait for a process */
    pending: number;
    /** Messages that a process took and has not settled */
    in_progress: number;
    measured_at: string;
  }[];
  /** Providers that need a person, of all projects, at most 100 of each state */
  providers: {
    project_id: string;
    provider: Provider;
    /** `paused`: the provider refuses the credential; `unreachable`: a server of the provider cannot be reached, and pushes to it wait */
    state: Open<"paused" | "unreachable">;
    reason: string;
    host?: string;
    since: string;
  }[];
  /** Projects that send more than their share, at most 100, the longest waiting first */
  backlogs: {
    project_id: string;
    /** Sends to few devices that wait for the project's turn; lists do not show them yet */
    sends: number;
    /** When the oldest of them was accepted */
    since: string;
  }[];
  /** Kept for 30 days, replayed or not; null: not measured yet */
  dead_letters: number | null;
};

export type ServiceStatus = {
  name: ServiceName;
  /** `ready` while one replica is; `not_answering`: no replica reports */
  state: Open<"ready" | "not_ready" | "not_answering">;
  replicas: {
    /** Host and process */
    instance: string;
    version: string;
    /** `not_answering`: it ended without a stop, hangs, or has no connection to the bus */
    state: Open<"ready" | "not_ready" | "not_answering">;
    started_at: string;
    last_seen_at: string;
    /** Why it is not ready; empty when it is */
    failing: {
      /** Such as `bus`, `database`, `consumers` */
      check: string;
      since: string;
      reason: string;
    }[];
    /** The ids of its keys, by variable. The first one encrypts or signs, the others only read: rotate when every replica lists the new one */
    keys?: Record<string, string[]>;
    /** Host and port of `HTTPS_PROXY`, if it reaches servers elsewhere through a proxy */
    proxy?: string;
    /** How long the broker took to store its last report */
    broker_ms?: number;
    /** How long the database took to answer its last ping */
    database_ms?: number;
  }[];
};

export type ServiceName = Open<"gateway" | "registry" | "dispatch" | "analytics">;

export type DeviceEvent = {
  project_id: string;
  device_id: string;
  at: string;
};

export type TopicEvent = {
  project_id: string;
  topic_id: string;
  topic: string;
  at: string;
};

export type ActivityReference = {
  id: string;
  /** Absent: of the end at `ends_at` */
  version?: number;
  event: ActivityEvent;
};

export type NotificationEvent = {
  project_id: string;
  notification_id: string;
  /** What sort of message it is, as a slug. Devices do not get it; lists, events, webhooks and statistics are by kind */
  kind?: string;
  /** What you call it in lists and statistics: at most 8 values by name. Devices do not get them; events, webhooks and statistics do. Use values that repeat, such as a campaign: a label has statistics of its first 1,000 values a month */
  labels?: Record<string, string>;
  /** Apple's push type. Absent: an alert or a background push. It goes to iPhones that have a token of this type; `data` and `ios` are its payload, and no field that shows something is accepted beside it. `voip` may have 5,120 bytes; `voip` and `pushtotalk` have a `ttl` of 0 unless you set one. `liveactivity`: of an activity */
  push_type?: PushType;
  /** The Live Activity that it is about; absent: none */
  activity?: ActivityReference;
  at: string;
};

export type DeliveryEvent = {
  project_id: string;
  notification_id: string;
  /** What sort of message it is, as a slug. Devices do not get it; lists, events, webhooks and statistics are by kind */
  kind?: string;
  /** What you call it in lists and statistics: at most 8 values by name. Devices do not get them; events, webhooks and statistics do. Use values that repeat, such as a campaign: a label has statistics of its first 1,000 values a month */
  labels?: Record<string, string>;
  /** Apple's push type. Absent: an alert or a background push. It goes to iPhones that have a token of this type; `data` and `ios` are its payload, and no field that shows something is accepted beside it. `voip` may have 5,120 bytes; `voip` and `pushtotalk` have a `ttl` of 0 unless you set one. `liveactivity`: of an activity */
  push_type?: PushType;
  /** The Live Activity that it is about; absent: none */
  activity?: ActivityReference;
  at: string;
  batch_id: string;
  platform: Platform;
};

/** The data of each type of event. */
export type EventData = {
  "io.herald.device.registered.v1": DeviceEvent & {
    platform: Platform;
    /** SHA-256 in hex */
    token_hash: string;
  };
  "io.herald.device.updated.v1": DeviceEvent & {
    /** Names of the fields that changed */
    changed: string[];
  };
  "io.herald.device.deactivated.v1": DeviceEvent & {
    reason: InactiveReason;
  };
  "io.herald.device.deleted.v1": DeviceEvent;
  "io.herald.device.subscribed.v1": TopicEvent & {
    device_id: string;
  };
  "io.herald.device.unsubscribed.v1": TopicEvent & {
    device_id: string;
  };
  "io.herald.topic.created.v1": TopicEvent;
  "io.herald.topic.deleted.v1": TopicEvent;
  "io.herald.notification.accepted.v1": NotificationEvent & {
    send_at?: string;
    /** Topics among its targets; absent: none */
    topics?: string[];
    /** Users among its targets; absent: none */
    users?: string[];
    /** The template that it was rendered from; absent: none */
    template?: TemplateVersion;
  };
  "io.herald.notification.changed.v1": NotificationEvent & {
    /** When it is sent now; in waves: the first one */
    send_at: string;
    /** Whose local time it is sent at: a time zone, or `device`; absent: an instant */
    time_zone?: string;
  };
  "io.herald.notification.paused.v1": NotificationEvent & {
    /** `requested`: an operator or a backend paused it. `failures`: too many devices failed */
    reason: Open<"requested" | "failures">;
    /** Why, for people */
    detail?: string;
    /** Absent: its rollout stopped by itself */
    by?: Author;
  };
  "io.herald.notification.resumed.v1": NotificationEvent & {
    by: Author;
  };
  "io.herald.notification.proposed.v1": NotificationEvent & {
    /** The devices that it would reach, estimated; of an upload its recipients, once it is complete. Absent: not known, registry did not answer */
    devices?: number;
    /** Sends to more devices need approval */
    limit: number;
    /** Who sent it */
    by: Author;
  };
  "io.herald.notification.approved.v1": NotificationEvent & {
    /** Why, for people */
    detail?: string;
    by: Author;
  };
  "io.herald.notification.rejected.v1": NotificationEvent & {
    /** `expired`: nobody decided in time */
    reason: Open<"requested" | "expired">;
    /** Why, for people */
    detail?: string;
    /** Absent: nobody decided in time */
    by?: Author;
  };
  "io.herald.notification.completed.v1": NotificationEvent & {
    /** `devices` is the sum of the others; `skipped` absent: none */
    counts: {
      devices: number;
      accepted: number;
      failed: number;
      expired: number;
      cancelled: number;
      skipped?: number;
    };
    /** Failed devices by reason */
    failures: Record<string, number>;
    /** Skipped devices by reason; absent: none */
    skips?: Record<string, number>;
  };
  "io.herald.notification.cancelled.v1": NotificationEvent & {
    /** `devices` is the sum of the others; `skipped` absent: none */
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
  "io.herald.notification.expired.v1": NotificationEvent & {
    /** `devices` is the sum of the others; `skipped` absent: none */
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
  "io.herald.notification.opened.v1": NotificationEvent & {
    device_id: string;
    /** Absent when the open token is of an earlier version, without a platform */
    platform?: Platform;
    /** The user that the device belonged to when the push was sent; absent: none */
    user_id?: string;
    /** The button that was pressed; absent: none */
    button?: string;
  };
  "io.herald.notification.received.v1": NotificationEvent & {
    platform: Platform;
    devices: string[];
    /** The user of each of `devices`, in the same order; null: none; absent: none of them has one */
    users?: (string | null)[];
  };
  "io.herald.notification.dismissed.v1": NotificationEvent & {
    platform: Platform;
    devices: string[];
    /** The user of each of `devices`, in the same order; null: none; absent: none of them has one */
    users?: (string | null)[];
  };
  "io.herald.notification.unopened.v1": NotificationEvent & {
    /** Absent: a device has not opened it */
    user_id?: string;
    /** A device without a user, or a target that was not active */
    device_id?: string;
    /** `unopened`: a provider accepted it. `not-delivered`: no provider has accepted it. `no-active-device`: there was none to send to */
    reason: Open<"unopened" | "not-delivered" | "no-active-device">;
  };
  "io.herald.delivery.accepted.v1": DeliveryEvent & {
    devices: string[];
    /** The user of each of `devices`, in the same order; null: none; absent: none of them has one */
    users?: (string | null)[];
    /** How many of `devices` were asked for a receipt; absent: none */
    asked?: number;
  };
  "io.herald.delivery.failed.v1": DeliveryEvent & {
    failures: {
      device_id: string;
      /** The user of the device; absent: none */
      user_id?: string;
      status: Open<"failed" | "expired" | "cancelled" | "skipped">;
      /** A delivery reason (/docs/errors#reasons) */
      reason: string;
      provider_reason?: string;
    }[];
    unregistered: {
      device_id: string;
      /** SHA-256 in hex */
      token_hash: string;
      at: string;
      /** Absent when its provider calls the token unregistered */
      reason?: Open<"token-invalid" | "endpoint-forbidden">;
    }[];
  };
  "io.herald.delivery.delayed.v1": DeliveryEvent & {
    devices: string[];
    /** The user of each of `devices`, in the same order; null: none; absent: none of them has one */
    users?: (string | null)[];
    /** When they get it, unless its kind is switched off or its cap is reached by then */
    until: string;
    /** A delivery reason (/docs/errors#reasons) */
    reason: string;
  };
  "io.herald.template.published.v1": {
    project_id: string;
    template: string;
    version: number;
    author: Author;
    at: string;
  };
  "io.herald.provider.paused.v1": {
    project_id: string;
    provider: Provider;
    at: string;
    reason: string;
    /** The provider's code, and its own words if it gave any */
    provider_reason: string;
    /** What to check */
    detail?: string;
  };
  "io.herald.provider.resumed.v1": {
    project_id: string;
    provider: Provider;
    at: string;
    /** `accepted-again`: the provider accepted a waiting push that Herald tried. More may come */
    reason: Open<"new-settings" | "accepted-again">;
  };
  "io.herald.webhook.disabled.v1": {
    project_id: string;
    webhook_id: string;
    reason: Open<"failing" | "gone">;
    failing_since?: string;
    at: string;
  };
  "io.herald.user.erased.v1": {
    project_id: string;
    user_id: string;
    at: string;
  };
  "io.herald.project.paused.v1": {
    project_id: string;
    /** `requested`: an operator paused it */
    reason: Open<"requested">;
    /** Why, for people */
    detail?: string;
    by: Author;
    /** When it resumes by itself; absent: when somebody resumes it */
    until?: string;
    at: string;
  };
  "io.herald.project.resumed.v1": {
    project_id: string;
    /** `until`: its end had come */
    reason: Open<"requested" | "until">;
    /** Absent: its end had come */
    by?: Author;
    at: string;
  };
  "io.herald.project.deleted.v1": {
    project_id: string;
    at: string;
  };
};

export type NewSharedContent = {
  /** The first line. iOS: `aps.alert.title`. Android: `notification.title`. Web: `notification.title`. `title` or `body` is required unless `silent` is true */
  title?: string | undefined;
  /** The text below the title. iOS: `aps.alert.body`. Android: `notification.body`. Web: `notification.body` */
  body?: string | undefined;
  /** What a tap opens: an absolute URL, or a path inside the app. All platforms get it as the payload's `link_to`, and the app opens it. Refused: `javascript:`, `data:`, `vbscript:`, `blob:` and paths that begin with `//`, however they are written */
  link_to?: string | undefined;
  /** https URL of a picture. iOS: the payload's `image`, with `mutable-content`, so that the app's notification service extension can download it. Android: FCM shows it. Web: `notification.image` */
  image?: string | undefined;
  /** Only devices that name this app get it. Absent: devices of every app. For those that name none, send to `condition:!exists(app)` */
  app?: string | undefined;
  /** Text values for the app, by name. iOS and web: the payload's `data`. Android: entries of FCM's `data`. Refused: names that FCM reserves (`from`, `message_type`, and all that begin with `google.` or `gcm.`), and Herald's own `notification_id`, `project_id`, `token`, `herald`, `receipt` and `aps`, and `link_to`, `thread`, `app_badge` and `buttons` beside the field of the notification */
  data?: Record<string, string> | undefined;
  /** The number on the app's icon; 0 removes it. iOS: `aps.badge`. Android: `notification_count`, which some launchers show. Web: the payload's `app_badge`, which the service worker may set */
  badge?: number | undefined;
  /** https URL of a small one-coloured image that stands for the app in Android's status bar. Web: `notification.badge`. iOS and Android apps ignore it */
  badge_image?: string | undefined;
  /** https URL of an image that stands for the sender. Web: `notification.icon`. iOS and Android apps ignore it */
  icon?: string | undefined;
  /** iOS: `aps.sound`, `default` or a sound file in the app. Android: `notification.sound`, for versions without notification channels. Web: `notification.sound`, which browsers ignore today. Absent: no sound on iOS, the device's setting elsewhere */
  sound?: string | undefined;
  /** iOS: `aps.category`, a notification category that the app registered; its buttons are shown. Web: `notification.category`, for the service worker. Android ignores it */
  category?: string | undefined;
  /** Android: the action of the intent filter whose activity a tap starts; absent: the app's launcher activity. iOS and web ignore it */
  click_action?: string | undefined;
  /** How much it may interrupt. iOS: `aps.interruption-level`; `time-sensitive` and `critical` need Apple's entitlements, and `critical` plays `sound`, or the default sound, even if the device is muted. Android: `notification_priority` `PRIORITY_LOW`, `PRIORITY_DEFAULT`, `PRIORITY_HIGH` or `PRIORITY_MAX`, for versions without notification channels. Web: `Urgency` `low`, `normal`, `high` or `high`, instead of that of `priority`. Silent notifications ignore it */
  urgency?: "passive" | "active" | "time-sensitive" | "critical" | undefined;
  /** How important it is among the app's notifications, from 0 to 1. iOS: `aps.relevance-score`, which orders its summary. Android and web ignore it */
  relevance?: number | undefined;
  /** Notifications with the same thread are grouped. iOS: `aps.thread-id`. Android: `data.thread`, for an app that groups them. Web ignores it */
  thread?: string | undefined;
  /** Android: the id of the notification channel, which the app has created; absent or unknown: the channel that the app's manifest names. iOS and web ignore it */
  android_channel?: string | undefined;
  /** The share of the devices that are asked to report that the push arrived: `true` or 1: all; absent: the project's `receipts`. Asks devices that registered the capability `receipts`. Android: only with the capability `draws` and `priority` `high`, because the app must draw the notification then: a phone on which the app was force-stopped, or that its vendor restricts, shows nothing of it, so asking may lower delivery there. Silent notifications are not asked */
  receipts?: boolean | number | undefined;
  /** Up to three buttons, for devices that registered the capability `buttons`; Android: with `draws` and `priority` `high`. Not with `category` or `silent`. A press is an open with `button` */
  buttons?:
    | readonly {
        id: string;
        title: string;
        /** What a tap opens: an absolute URL, or a path inside the app. All platforms get it as the payload's `link_to`, and the app opens it. Refused: `javascript:`, `data:`, `vbscript:`, `blob:` and paths that begin with `//`, however they are written */
        link_to?: string | undefined;
        /** `false`: the press is reported and the app stays closed; not with `link_to` */
        opens?: boolean | undefined;
        /** Shown as a warning where the platform can */
        destructive?: boolean | undefined;
      }[]
    | undefined;
  /** True: wakes the app and shows nothing. iOS: a background push, which the system may delay or drop. Android: a data message with normal priority. Web: a payload without `notification`; most browsers show a notice of their own when a service worker shows none */
  silent?: boolean | undefined;
  /** `high` (the default) delivers at once, `normal` when it suits the battery. iOS: `apns-priority` 10 or 5. Android: `HIGH` or `NORMAL`. Web: `Urgency` `high` or `normal`, unless `urgency` says otherwise. Silent notifications are always `normal` */
  priority?: "high" | "normal" | undefined;
  /** How long the notification is worth delivering, in seconds from acceptance, `send_at` or the beginning of its wave; at most 28 days. Devices that are not reached by then count as `expired`. Providers keep it for devices that are offline: `apns-expiration`, FCM's `ttl`, Web Push's `TTL` */
  ttl?: number | undefined;
  /** A later notification with the same id replaces an earlier one on the screen. iOS: `apns-collapse-id`. Android: `tag` and `collapse_key`. Web: `tag` and `Topic`, which has a hash of an id that is not base64url. Absent: the notification's own id, so only a repeat of it is replaced. The push that arrives last replaces the others, and pushes sent within a second may arrive in any order: send the next one after `io.herald.delivery.accepted.v1` of the one before, or put a version into `data` and let the app drop older ones. Updates of a Live Activity are in order */
  collapse_id?: string | undefined;
  /** What sort of message it is, as a slug. Devices do not get it; lists, events, webhooks and statistics are by kind */
  kind?: string | undefined;
  /** What you call it in lists and statistics: at most 8 values by name. Devices do not get them; events, webhooks and statistics do. Use values that repeat, such as a campaign: a label has statistics of its first 1,000 values a month */
  labels?: Record<string, string> | undefined;
  /** Whose local time `send_at` is: an IANA time zone, or `device`, the zone of each device. Then it is sent in waves, one for each instant at which clocks of its devices show `send_at`, to the devices that are registered when the wave begins. A device that changes its zone meanwhile may get it twice (with the same collapse id) or not at all. A device without a zone has its project's `default_time_zone` */
  time_zone?: string | undefined;
  /** With `time_zone: "device"`, what happens to devices whose clocks have passed `send_at` already: `skip` them with the reason `past-local-time`, send `now`, or `tomorrow` at the same local time. Required once `send_at` has passed in some time zone */
  past?: "skip" | "now" | "tomorrow" | undefined;
  /** `title`, `body`, `link_to`, `image` and titles of `buttons` by locale. A device gets those for its `identifiers.current_locale`, by what locales mean: `zh-Hant` is also for `zh-TW`, `es-419` for `es-MX`, `pt-BR` for `pt-PT` if nothing is nearer, but never another script; otherwise the notification's own. A field that a localization leaves out is the notification's own */
  localizations?:
    | Record<
        string,
        {
          /** The first line. iOS: `aps.alert.title`. Android: `notification.title`. Web: `notification.title`. `title` or `body` is required unless `silent` is true */
          title?: string | undefined;
          /** The text below the title. iOS: `aps.alert.body`. Android: `notification.body`. Web: `notification.body` */
          body?: string | undefined;
          /** What a tap opens: an absolute URL, or a path inside the app. All platforms get it as the payload's `link_to`, and the app opens it. Refused: `javascript:`, `data:`, `vbscript:`, `blob:` and paths that begin with `//`, however they are written */
          link_to?: string | undefined;
          /** https URL of a picture. iOS: the payload's `image`, with `mutable-content`, so that the app's notification service extension can download it. Android: FCM shows it. Web: `notification.image` */
          image?: string | undefined;
          /** Titles of `buttons` by their ids */
          buttons?: Record<string, string> | undefined;
        }
      >
    | undefined;
  /** Merged over the APNs payload (JSON Merge Patch); `null` removes a field. Herald's own `notification_id`, `project_id`, `token`, `receipt` and `buttons` are reserved. iOS alone */
  ios?: Record<string, unknown> | undefined;
  /** Merged over FCM's `message` (JSON Merge Patch); `null` removes a field. Fields that FCM's HTTP v1 API does not have or would refuse are refused, and so are its target and `android.data`, which would replace Herald's values. Android alone */
  android?: Record<string, unknown> | undefined;
  /** Merged over the JSON that the service worker gets (JSON Merge Patch). Herald's own `notification_id`, `project_id`, `token`, `receipt`, `buttons` and `web_push` are reserved. Web alone */
  web?: Record<string, unknown> | undefined;
};

export type NewNotification = NewSharedContent & {
  /** Who gets it: each entry names a set of devices, and the notification goes once to every active device of any of them. `topic:news`, `user:u_8412`, `device:dev_…`, `token:<push token>`, `metadata:plan=pro`, `identifiers:current_locale=de`, `condition:<expression>` or `all` */
  targets?: readonly Target[] | undefined;
  /** So many seconds after the start, `io.herald.notification.unopened.v1` names the users who have not opened it. Only with targets `user:`, `device:` and `token:`; not with `recipients`, `rollout`, `silent` or `time_zone: "device"` */
  escalate_after?: number | undefined;
  /** Apple's push type. Absent: an alert or a background push. It goes to iPhones that have a token of this type; `data` and `ios` are its payload, and no field that shows something is accepted beside it. `voip` may have 5,120 bytes; `voip` and `pushtotalk` have a `ttl` of 0 unless you set one. `liveactivity`: of an activity */
  push_type?: "voip" | "complication" | "widgets" | "controls" | "location" | "fileprovider" | "pushtotalk" | undefined;
  /** The kind of the control that a push of the type `controls` updates */
  push_name?: string | undefined;
  /** The published template whose texts and settings it has. Fields beside it replace the template's, in every language */
  template?: string | undefined;
  /** Instead of `targets`: recipients with values of their own. Up to 2,000 in the request, or `{ upload: <kind> }`, and then a file with `PUT /notifications/{id}/recipients` */
  recipients?:
    | readonly {
        /** A user, a device or a push token */
        target: RecipientTarget;
        /** Values of this recipient alone */
        variables?: Record<string, string | number | boolean> | undefined;
      }[]
    | {
        upload: "user" | "device" | "token";
      }
    | undefined;
  /** When to send it, at most 30 days ahead: a time with offset, or without one beside `time_zone`. Absent or past: now. Where clocks skip a local time, the first instant after the gap; where they show it twice, the first */
  send_at?: Date | string | undefined;
  /** It begins with few devices, goes no faster than asked, and stops by itself when devices fail; absent: all devices at once. Its time to live begins again with each part. Not beside `recipients` and `time_zone: "device"` */
  rollout?:
    | {
        /** A first part of the audience, chosen by chance; absent: none */
        canary?:
          | {
              /** Which share of the audience gets it first */
              share: number;
              /** How long the others wait, from its beginning; absent: `10m` */
              wait?: string | undefined;
            }
          | undefined;
        /** How many devices are released a minute, give or take a 4096th of the audience; at least as many as reach all of them in 400 minutes. A change may only lower it */
        per_minute?: number | undefined;
        /** It is paused when more devices failed, judged from 50 outcomes on; absent: never */
        stop_if?:
          | {
              /** The share of devices that failed, of those with an outcome */
              failed: number;
              /** Devices whose app is gone count as failed, too; absent: they do not */
              unregistered?: true | undefined;
            }
          | undefined;
      }
    | undefined;
  /** Values for the texts, which are Liquid with `template`, `variables` or `recipients`: `{{ order }}`, and of each device `{{ device.metadata.plan }}`, `{{ device.identifiers.app_version }}` and `{{ user.id }}`. Without these fields, `{{` is text */
  variables?: Record<string, string | number | boolean> | undefined;
  /** The language of the texts outside `localizations`, for their dates, numbers and plurals: the template's own, or `en` */
  locale?: string | undefined;
};

export type NotificationChange = {
  /** When to send it, at most 30 days ahead: a time with offset, or without one beside `time_zone`. Absent or past: now. Where clocks skip a local time, the first instant after the gap; where they show it twice, the first */
  send_at?: Date | string | undefined;
  time_zone?: string | null | undefined;
  past?: "skip" | "now" | "tomorrow" | null | undefined;
  ttl?: number | null | undefined;
  /** A lower speed, also while it is sent. In a request of its own */
  rollout?:
    | {
        /** How many devices are released a minute, give or take a 4096th of the audience; at least as many as reach all of them in 400 minutes. A change may only lower it */
        per_minute: number;
      }
    | undefined;
};

export type NewActivity = {
  /** The name of the app's `ActivityAttributes` */
  attributes_type: string;
  /** The `ActivityAttributes` of the app, which do not change. Herald adds `herald`, by which the app reports an open */
  attributes: Record<string, unknown>;
  /** True: starts the activity on the devices that have a token `liveactivity/<attributes_type>`. False: the app starts it */
  start?: boolean | undefined;
  /** Only devices that name this app */
  app?: string | undefined;
  /** Devices whose start token says `channels` follow a broadcast channel of Apple: a new state is one request for all of them. The others have tokens */
  via?: "channel" | undefined;
  /** What sort of message it is, as a slug. Devices do not get it; lists, events, webhooks and statistics are by kind */
  kind?: string | undefined;
  /** What you call it in lists and statistics: at most 8 values by name. Devices do not get them; events, webhooks and statistics do. Use values that repeat, such as a campaign: a label has statistics of its first 1,000 values a month */
  labels?: Record<string, string> | undefined;
  /** The `ContentState` of the app's attributes, as the app decodes it. A Swift `Date` in it counts seconds from 2001, unless the app decodes a type of its own */
  content_state: Record<string, unknown>;
  /** When the state is out of date: the app may show it so */
  stale_at?: Date | string | undefined;
  /** Which of the app's activities iOS shows first: the highest */
  relevance?: number | undefined;
  /** `high` (`apns-priority` 10) for a start, an end and an alert, else `normal` (5), which does not count towards Apple's budget */
  priority?: "high" | "normal" | undefined;
  /** Who gets it: each entry names a set of devices, and the notification goes once to every active device of any of them. `topic:news`, `user:u_8412`, `device:dev_…`, `token:<push token>`, `metadata:plan=pro`, `identifiers:current_locale=de`, `condition:<expression>` or `all` */
  targets: readonly Target[];
  /** What the start shows. Required unless `start` is false */
  alert?:
    | {
        title: string;
        body: string;
        /** The name of a sound in the app */
        sound?: string | undefined;
      }
    | undefined;
  /** When it ends by itself, at most 8 hours ahead, the default */
  ends_at?: Date | string | undefined;
};

export type ActivityState = {
  /** The `ContentState` of the app's attributes, as the app decodes it. A Swift `Date` in it counts seconds from 2001, unless the app decodes a type of its own */
  content_state: Record<string, unknown>;
  /** When the state is out of date: the app may show it so */
  stale_at?: Date | string | undefined;
  /** Which of the app's activities iOS shows first: the highest */
  relevance?: number | undefined;
  /** `high` (`apns-priority` 10) for a start, an end and an alert, else `normal` (5), which does not count towards Apple's budget */
  priority?: "high" | "normal" | undefined;
  alert?:
    | {
        title: string;
        body: string;
        /** The name of a sound in the app */
        sound?: string | undefined;
      }
    | undefined;
  /** Of the caller: a state with a lower one than the newest is not written */
  sequence?: number | undefined;
};

export type ActivityEnd = {
  /** The last state; absent: the newest one */
  content_state?: Record<string, unknown> | undefined;
  /** When iOS removes it from the screen, at most 4 hours ahead, the default; past: at once */
  dismiss_at?: Date | string | undefined;
  alert?:
    | {
        title: string;
        body: string;
        /** The name of a sound in the app */
        sound?: string | undefined;
      }
    | undefined;
};

export type NewDevice = {
  token: string;
  platform: "ios" | "android" | "web";
  /** Which provider gave the push token. Default: the platform's own (`apns` for ios, `fcm` for android, `webpush` for web). `fcm` serves every platform */
  provider?: "apns" | "fcm" | "webpush" | undefined;
  installation_id?: string | undefined;
  /** The app that gave the push token: its bundle id or package. Absent: the `bundle_id` of the APNs settings; other providers need none. On ios, pushes to an app that is neither `bundle_id` nor in `bundle_ids` fail with `app-not-configured` */
  app?: string | undefined;
  metadata?: Record<string, unknown> | undefined;
  identifiers?: Record<string, unknown> | undefined;
  environment?: "production" | "sandbox" | undefined;
  token_kind?: "token" | "fid" | undefined;
  keys?:
    | {
        p256dh: string;
        auth: string;
        /** The `applicationServerKey` that the subscription was made with. Absent: a known endpoint keeps its key, and a new one counts as made with the current key */
        vapid_key?: string | undefined;
      }
    | undefined;
  /** What the app's kit can do: `receipts` (reports that a push arrived), `buttons` (shows buttons), `draws` (Android: shows notifications that Herald sends as data), `updates`. Others are ignored. `PUT /identification` without it removes them, because an older version of the app may not have them */
  capabilities?: readonly string[] | undefined;
  topics?: readonly string[] | undefined;
  /** The user of the device; null: none; absent: unchanged */
  user_id?: string | null | undefined;
};

export type PutDevice = NewDevice & {
  /** Web Push: the id of the key that the subscription was made with, instead of `keys.vapid_key` */
  vapid_key_id?: string | undefined;
  /** Of a new device. A known one keeps its own, which is newer */
  status?: "active" | "inactive" | undefined;
  /** Of a new device. A known one keeps its own, which is newer */
  last_seen_at?: Date | string | undefined;
};

export type NewImport = {
  format: "herald" | "pinpoint" | "sns" | "onesignal" | "firebase" | "parse" | "azure-nh" | "pnta";
  /** Reports what the import would do, and changes nothing */
  dry_run?: boolean | undefined;
};

export type DeviceChange = {
  token?: string | undefined;
  keys?:
    | {
        p256dh: string;
        auth: string;
        /** The `applicationServerKey` that the subscription was made with. Absent: a known endpoint keeps its key, and a new one counts as made with the current key */
        vapid_key?: string | undefined;
      }
    | undefined;
  metadata?: Record<string, unknown> | undefined;
  identifiers?: Record<string, unknown> | undefined;
  status?: "active" | "inactive" | undefined;
  installation_id?: string | null | undefined;
  /** What the app's kit can do: `receipts` (reports that a push arrived), `buttons` (shows buttons), `draws` (Android: shows notifications that Herald sends as data), `updates`. Others are ignored. `PUT /identification` without it removes them, because an older version of the app may not have them */
  capabilities?: readonly string[] | undefined;
  app?: string | null | undefined;
  /** With a project token: the user of the device; null: none */
  user_id?: string | null | undefined;
};

export type NewFurtherToken = {
  /** An APNs device token, an FCM token or Installation ID, or the endpoint of a Web Push subscription. One token in two spellings is one device: APNs tokens are stored in lower case, endpoints as browsers write URLs */
  token: string;
  /** Absent: the device's */
  environment?: "production" | "sandbox" | undefined;
  /** Of `liveactivity`: iOS 18 or later, so that a start may name a broadcast channel */
  channels?: boolean | undefined;
};

export type NewPreferences = {
  /** By kind, whether it is wanted. Replaces all choices made before: a kind that is not named follows its default */
  kinds: Record<string, boolean>;
  /** In the time zone of each device; notifications wait until they end. Absent: none */
  quiet_hours?:
    | {
        /** Of the device's time zone */
        from: string;
        /** The first minute after them; before `from`: on the next day */
        to: string;
      }
    | undefined;
};

export type NewTopic = {
  name: string;
  closed?: boolean | undefined;
};

export type TopicChange = {
  closed: boolean;
};

/** The fields of a notification without `targets` and `send_at`. `title`, `body`, `link_to`, `image` and the values of `data` are Liquid: they show the declared variables, `device.metadata.<path>`, `device.identifiers.<path>` and `user.id` */
export type NewTemplate = NewSharedContent & {
  variables?:
    | Record<
        string,
        {
          type: "string" | "number" | "boolean" | "datetime";
          /** The value where a send gives none; absent: a send must give one */
          fallback?: string | number | boolean | undefined;
        }
      >
    | undefined;
  /** The language of the texts outside `localizations`, for their dates, numbers and plurals; absent: `en` */
  locale?: string | undefined;
};

export type NewPreview = {
  /** Absent: the draft */
  version?: "draft" | number | undefined;
  /** Shown instead of a stored version, and not stored */
  content?: NewTemplate | undefined;
  variables?: Record<string, string | number | boolean> | undefined;
  /** A device whose `device.metadata`, `device.identifiers`, `user.id` and language it shows. Absent: names stand for the values */
  device?: string | undefined;
  /** Of the device: selects the localization */
  locale?: string | undefined;
};

export type StatsQuery = {
  /** Start; absent: 24 hours before `to` */
  from?: Date | string | undefined;
  /** End; absent: now */
  to?: Date | string | undefined;
  /** Length of the intervals of `series` */
  interval?: "hour" | "day" | undefined;
  /** Where days and hours begin: an IANA time zone; absent: UTC */
  time_zone?: string | undefined;
  /** One notification */
  notification?: string | undefined;
  /** Notifications that named this topic as a target */
  topic?: string | undefined;
  /** Notifications that named this user as a target */
  user?: string | undefined;
  /** Notifications of this kind */
  kind?: string | undefined;
  /** Notifications with this label: `<name>:<value>` */
  label?: string | undefined;
  /** Notifications with this push type */
  push_type?:
    | "voip"
    | "complication"
    | "widgets"
    | "controls"
    | "location"
    | "fileprovider"
    | "pushtotalk"
    | "liveactivity"
    | undefined;
  /** Deliveries and opens of one platform */
  platform?: "ios" | "android" | "web" | undefined;
  /** Adds `groups`: the totals of each platform, kind, push type, topic or value of a label */
  by?: string | undefined;
};

export type NewWebhook = {
  /** https on port 443 with a public host name */
  url: string;
  /** Event types that it gets; absent or null: all */
  events?: readonly (keyof EventData)[] | null | undefined;
  description?: string | undefined;
};

export type WebhookChange = {
  /** https on port 443 with a public host name */
  url?: string | undefined;
  /** Event types that it gets; absent or null: all */
  events?: readonly (keyof EventData)[] | null | undefined;
  description?: string | undefined;
  enabled?: boolean | undefined;
};

export type NewProject = {
  name: string;
  /** Names the project in files and scripts, where ids differ between installations. Unique, and fixed once it is set */
  key?: string | undefined;
  open_registration?: boolean | undefined;
  /** Paths of `metadata` and `identifiers`, such as `user_id` or `billing.plan`, that clients may not write. A path covers what is below it, in upper and lower case and with or without `_` */
  protected_metadata?: readonly string[] | undefined;
  /** `false`: without a first token */
  first_token?: boolean | undefined;
};

export type ProjectChange = {
  name?: string | undefined;
  open_registration?: boolean | undefined;
  /** Paths of `metadata` and `identifiers`, such as `user_id` or `billing.plan`, that clients may not write. A path covers what is below it, in upper and lower case and with or without `_` */
  protected_metadata?: readonly string[] | undefined;
  /** Devices that were not seen for so long become inactive, with the reason `stale`; the next registration activates them. `null`: never */
  stale_after?: string | null | undefined;
  /** The share of the devices that a notification without `receipts` asks to report that it arrived; `false`: none. On Android, asking may lower delivery, see `receipts` of a notification */
  receipts?: boolean | number | undefined;
  /** When devices get no notification, in the time zone of each. A kind may have its own; kinds that are critical, and silent notifications, pass. `null`: never */
  quiet_hours?:
    | {
        /** Of the device's time zone */
        from: string;
        /** The first minute after them; before `from`: on the next day */
        to: string;
        /** `delay`: devices get the notification when they end */
        mode: "delay" | "skip";
      }
    | null
    | undefined;
  /** The time zone of devices that name none: an IANA name */
  default_time_zone?: string | undefined;
  /** Sends to more devices are proposed, and wait until an operator other than their sender approves them. Only an admin of the installation may raise the number or remove it. `null`: none wait */
  approval?:
    | {
        /** Sends to more devices are proposed, and wait for approval */
        devices: number;
      }
    | null
    | undefined;
};

export type NewPause = {
  /** Why, for people */
  reason?: string | undefined;
  /** When it resumes by itself; absent: when somebody resumes it */
  until?: Date | string | undefined;
};

export type NewRollout = {
  /** A first part of the audience, chosen by chance; absent: none */
  canary?:
    | {
        /** Which share of the audience gets it first */
        share: number;
        /** How long the others wait, from its beginning; absent: `10m` */
        wait?: string | undefined;
      }
    | undefined;
  /** How many devices are released a minute, give or take a 4096th of the audience; at least as many as reach all of them in 400 minutes. A change may only lower it */
  per_minute?: number | undefined;
  /** It is paused when more devices failed, judged from 50 outcomes on; absent: never */
  stop_if?:
    | {
        /** The share of devices that failed, of those with an outcome */
        failed: number;
        /** Devices whose app is gone count as failed, too; absent: they do not */
        unregistered?: true | undefined;
      }
    | undefined;
};

/** By name; `null` restores the default */
export type LimitsChange = {
  token?: number | null | undefined;
  project?: number | null | undefined;
  device?: number | null | undefined;
  sends?: number | null | undefined;
  "dry-runs"?: number | null | undefined;
  queued?: number | null | undefined;
  "queued-bytes"?: number | null | undefined;
  "event-streams"?: number | null | undefined;
  exports?: number | null | undefined;
  devices?: number | null | undefined;
};

export type KindDeclaration = {
  /** What people read where they switch it off */
  title: string;
  /** Whether devices get it that have no preference for it */
  on_by_default?: boolean | undefined;
  /** People cannot switch it off, and neither quiet hours nor a cap apply: for what they must know, such as a security alert */
  critical?: boolean | undefined;
  /** Instead of the project's; `null`: none. Absent: the project's */
  quiet_hours?:
    | {
        /** Of the device's time zone */
        from: string;
        /** The first minute after them; before `from`: on the next day */
        to: string;
        /** `delay`: devices get the notification when they end */
        mode: "delay" | "skip";
      }
    | null
    | undefined;
  /** Absent: any number */
  frequency_cap?:
    | {
        count: number;
        per: "hour" | "day" | "week";
      }
    | undefined;
};

export type NewProjectToken = {
  name: string;
  scopes?: readonly ("send" | "read" | "devices" | "export" | "templates")[] | undefined;
  expires_at?: Date | string | undefined;
};

export type NewOperator = {
  name: string;
  role: "member" | "viewer" | "operator" | "admin";
  projects?:
    | readonly {
        id: string;
        role: "viewer" | "operator" | "admin";
        /** May approve sends of others; admins of the installation may, too */
        approve?: true | undefined;
      }[]
    | undefined;
};

export type OperatorChange = {
  name?: string | undefined;
  role?: "member" | "viewer" | "operator" | "admin" | undefined;
  /** Replaces all grants */
  projects?:
    | readonly {
        id: string;
        role: "viewer" | "operator" | "admin";
        /** May approve sends of others; admins of the installation may, too */
        approve?: true | undefined;
      }[]
    | undefined;
};

export type AuditFilters = {
  /** Only rows of this operator */
  operator?: string | "root" | "unknown" | "herald" | undefined;
  /** Only rows of this action, named by its operationId */
  action?: string | undefined;
  /** Only rows about this project */
  project_id?: string | undefined;
  /** Only rows of this time or later */
  created_after?: Date | string | undefined;
  /** Only rows before this time */
  created_before?: Date | string | undefined;
};

export type NewIdentityKey = {
  public_key?: string | Record<string, unknown> | undefined;
};

export type TestPush = {
  token: string;
  /** The device's platform, for a token of FCM, which serves every platform. Default: the provider's own */
  platform?: "ios" | "android" | "web" | undefined;
  environment?: "production" | "sandbox" | undefined;
  token_kind?: "token" | "fid" | undefined;
  keys?:
    | {
        p256dh: string;
        auth: string;
        /** The `applicationServerKey` that the subscription was made with. Absent: a known endpoint keeps its key, and a new one counts as made with the current key */
        vapid_key?: string | undefined;
      }
    | undefined;
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
      /** Further apps of the team that the project sends to. A device names its `app`; without one it belongs to `bundle_id` */
      bundle_ids?: readonly string[] | undefined;
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
  /** The service account's JSON as Firebase gives it */
  service_account: Record<string, unknown>;
  endpoint?: string | undefined;
  ca?: string | undefined;
};

export type WebPushSettings = {
  subject: string;
  public_key?: string | undefined;
  private_key?: string | undefined;
  /** The origin of the web app. With it, Safari shows notifications that have a title by itself (Declarative Web Push), and a click opens `link_to` there */
  site?: string | undefined;
  endpoint?: string | undefined;
  ca?: string | undefined;
};

export type VapidKeyPair = {
  public_key?: string | undefined;
  private_key: string;
};

/** The values that this version of Herald knows, for forms and options. Answers of later versions may contain more. */
export const knownValues = {
  deviceStatus: ["active", "inactive"],
  platform: ["ios", "android", "web"],
  notificationStatus: ["proposed", "scheduled", "accepted", "sending", "paused", "completed", "cancelled", "expired"],
  deliveryStatus: ["pending", "accepted", "failed", "expired", "cancelled", "skipped"],
  messageStatus: ["waiting", "delivered", "failed"],
  recipientKind: ["user", "device", "token"],
  importFormat: ["herald", "pinpoint", "sns", "onesignal", "firebase", "parse", "azure-nh", "pnta"],
  scope: ["send", "read", "devices", "export", "templates"],
  role: ["member", "viewer", "operator", "admin"],
  projectRole: ["viewer", "operator", "admin"],
  environment: ["production", "sandbox"],
  tokenKind: ["token", "fid"],
  past: ["skip", "now", "tomorrow"],
  urgency: ["passive", "active", "time-sensitive", "critical"],
  pushType: ["voip", "complication", "widgets", "controls", "location", "fileprovider", "pushtotalk", "liveactivity"],
  sendPushType: ["voip", "complication", "widgets", "controls", "location", "fileprovider", "pushtotalk"],
  eventType: [
    "io.herald.device.registered.v1",
    "io.herald.device.updated.v1",
    "io.herald.device.deactivated.v1",
    "io.herald.device.deleted.v1",
    "io.herald.device.subscribed.v1",
    "io.herald.device.unsubscribed.v1",
    "io.herald.topic.created.v1",
    "io.herald.topic.deleted.v1",
    "io.herald.notification.accepted.v1",
    "io.herald.notification.changed.v1",
    "io.herald.notification.paused.v1",
    "io.herald.notification.resumed.v1",
    "io.herald.notification.proposed.v1",
    "io.herald.notification.approved.v1",
    "io.herald.notification.rejected.v1",
    "io.herald.notification.completed.v1",
    "io.herald.notification.cancelled.v1",
    "io.herald.notification.expired.v1",
    "io.herald.notification.opened.v1",
    "io.herald.notification.received.v1",
    "io.herald.notification.dismissed.v1",
    "io.herald.notification.unopened.v1",
    "io.herald.delivery.accepted.v1",
    "io.herald.delivery.failed.v1",
    "io.herald.delivery.delayed.v1",
    "io.herald.template.published.v1",
    "io.herald.provider.paused.v1",
    "io.herald.provider.resumed.v1",
    "io.herald.webhook.disabled.v1",
    "io.herald.user.erased.v1",
    "io.herald.project.paused.v1",
    "io.herald.project.resumed.v1",
    "io.herald.project.deleted.v1",
  ],
} as const;
