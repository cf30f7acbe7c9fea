import type { IncomingHttpHeaders } from "node:http";
import type { KnownAnswerName } from "./script/known-answers.ts";

/** What the package exports. It depends on no library, so that its types need none where it is installed. */

export type SimulatedProvider = "apns" | "fcm" | "webpush";

/** How a request without an answer ended. */
export type Broken = "rst" | "hang" | "closed";

/** One request that reached a simulator. */
export interface PushAttempt {
  readonly provider: SimulatedProvider;
  readonly token: string;
  /** May include HTTP/2 pseudo headers, which are never shown. */
  readonly headers: IncomingHttpHeaders;
  /** Web Push: the VAPID public key of the request's signature, base64url. */
  readonly vapidKey?: string | undefined;
  /** The payload for the device: an object, or JSON text that is parsed only when a push is shown. */
  readonly payload: unknown;
  /** The provider's id of the message. */
  readonly id: string;
  /** Null when no answer was sent; then `broken` says how the request ended. */
  readonly status: number | null;
  readonly broken?: Broken | undefined;
  readonly reason?: string | undefined;
  /** The request's error in words, because the providers' answers contain only a reason. */
  readonly problem?: string | undefined;
}

export interface Push extends Omit<PushAttempt, "headers"> {
  /** The cursor of `since`. Grows by one with every request and is never reused. */
  readonly seq: number;
  readonly headers: Readonly<Record<string, string>>;
  /** ISO time of the answer. */
  readonly at: string;
}

/** As in the query of `GET /pushes`. */
export interface PushFilter {
  readonly provider?: SimulatedProvider | undefined;
  readonly token?: string | undefined;
  readonly status?: number | undefined;
  /** A number is a cursor: pushes with a greater `seq`. A date: pushes answered at that time or later. */
  readonly since?: number | Date | undefined;
}

export interface ProviderStats {
  /** Requests, answered or not. */
  readonly total: number;
  /** Counts by status; requests without an answer count as `rst`, `hang` or `closed`. */
  readonly answers: Readonly<Record<string, number>>;
  readonly firstAt: string;
  readonly lastAt: string;
}

/** A rule of a script; the README says what each field does. */
export interface Rule {
  provider?: SimulatedProvider | "fcm-token" | undefined;
  tokenPrefix?: string | undefined;
  /** 0 to 1. */
  share?: number | undefined;
  times?: number | undefined;
  beyond?: { burst: number; everyMs: number } | undefined;
  known?: KnownAnswerName | undefined;
  status?: number | undefined;
  reason?: string | undefined;
  headers?: Record<string, string> | undefined;
  body?: string | undefined;
  /** Milliseconds since 1970. */
  timestamp?: number | undefined;
  delayMs?: number | undefined;
  goaway?: number | undefined;
  /** A code of RFC 9113, or its name. */
  rst?: number | ResetName | undefined;
  hang?: boolean | undefined;
  closeSocket?: boolean | undefined;
  oneStreamStart?: boolean | undefined;
}

export type ResetName =
  | "NO_ERROR"
  | "PROTOCOL_ERROR"
  | "INTERNAL_ERROR"
  | "FLOW_CONTROL_ERROR"
  | "SETTINGS_TIMEOUT"
  | "STREAM_CLOSED"
  | "FRAME_SIZE_ERROR"
  | "REFUSED_STREAM"
  | "CANCEL"
  | "COMPRESSION_ERROR"
  | "CONNECT_ERROR"
  | "ENHANCE_YOUR_CALM"
  | "INADEQUATE_SECURITY"
  | "HTTP_1_1_REQUIRED";

/** A state that a card got or showed. */
export interface CardState {
  readonly timestamp: number;
  readonly event: string;
  readonly contentState: unknown;
}

/** A Live Activity on a phone, as ActivityKit keeps it. */
export interface Instance {
  readonly id: string;
  readonly app: string;
  readonly attributesType: string;
  readonly attributes: unknown;
  /** The token of the push that started it; absent: the app did. */
  readonly startToken?: string;
  /** The channel that it follows in place of a token. */
  readonly channel?: string;
  /** For updates; null: the app was not given it yet. */
  token: string | null;
  state: "active" | "ended";
  /** Seconds since 1970 of the last applied push. */
  timestamp: number;
  /** Seconds since 1970 when iOS removes it, if a push said so. */
  dismissalDate?: number;
  /** How many alerts it showed. */
  alerts: number;
  /** All pushes that reached it, in their order. */
  readonly arrived: CardState[];
  /** What it showed, one after another. */
  readonly shown: CardState[];
}

/** A broadcast channel of an app. */
export interface SimulatedChannel {
  /** Base64. */
  readonly id: string;
  readonly app: string;
  /** It keeps its last message for devices that subscribe later. */
  readonly storesLast: boolean;
}

/** An app on a phone, with its tokens: `alert` is the device token; the others are named by push type, controls `controls/<kind>`. */
export interface Phone {
  readonly app: string;
  readonly ios: string;
  readonly tokens: Readonly<Record<string, string>>;
}

/** The result of a browser's `PushSubscription.toJSON()`. */
export interface WebPushSubscription {
  readonly endpoint: string;
  readonly expirationTime: null;
  /** Base64url: the browser's public key, and its shared secret with the app's server. */
  readonly keys: { readonly p256dh: string; readonly auth: string };
}

/** The public half of a signing key of Apple's: SPKI, PEM. */
export interface ApnsKey {
  readonly keyId: string;
  readonly teamId: string;
  readonly publicKey: string;
}

export interface ApnsOptions {
  /** Signing keys to verify the tokens of their teams. Any signature of another team is accepted. */
  readonly keys?: readonly ApnsKey[];
  /** Answer 429 TooManyProviderTokenUpdates to a second new token of a key within 20 minutes. Default: no. */
  readonly limitTokenUpdates?: boolean;
  /** Milliseconds since 1970, for the age of tokens. */
  readonly now?: () => number;
}

/** A service account that Google has issued. */
export interface FcmAccount {
  readonly clientEmail: string;
  readonly projectId: string;
  /** The public half of its `private_key`, SPKI PEM. */
  readonly publicKey: string;
}

export interface FcmOptions {
  /** Service accounts to verify assertions. Without any, every signature is accepted. */
  readonly accounts?: readonly FcmAccount[];
  /** Milliseconds since 1970, for the age of tokens. */
  readonly now?: () => number;
}

export interface WebPushOptions {
  /** Milliseconds since 1970, for the age of VAPID tokens. */
  readonly now?: () => number;
  /** Speaks only HTTP/1.1, as a UnifiedPush server may. Default: also HTTP/2. */
  readonly http1Only?: boolean;
  /** Keeps the subscriptions, so that they survive a restart. Default: none. */
  readonly subscriptionsFile?: string | undefined;
}

export interface SimulatorsOptions {
  /** The gateway's origin, to which the page of pushes sends opens. */
  readonly gateway?: string | undefined;
  /** 0, the default, takes a free port. */
  readonly ports?: Readonly<Partial<Record<SimulatedProvider | "control", number>>>;
  /** The address to listen on. Default 127.0.0.1. */
  readonly host?: string;
  /** The name that clients use, in the URLs and in the certificate. Default: `host`. */
  readonly publicHost?: string;
  /** `count` keeps numbers only, so that a benchmark measures the sender. Default `all`. */
  readonly record?: "all" | "count";
  /** The minimum number of pushes in memory; older ones are dropped and counted. Default 200,000 (about 300 MB). */
  readonly keep?: number;
  /** The file for the certificate, so that a restart uses the same authority. Default: a new one at each start. */
  readonly identityFile?: string | undefined;
  /** Milliseconds since 1970, for the limits of a script. Default: the system's clock. */
  readonly now?: () => number;
  readonly apns?: ApnsOptions;
  readonly fcm?: FcmOptions;
  readonly webpush?: WebPushOptions;
}

interface Server {
  /** `https://127.0.0.1:…`, or with `publicHost`. */
  readonly url: string;
  /** Connections of clients since the start, and now. */
  connectionCount(): { accepted: number; open: number };
  stop(): Promise<void>;
}

export interface Simulators {
  readonly apns: Server & {
    readonly name: "apns";
    /** Verifies the tokens of these keys' teams from now on. */
    setKeys(keys: readonly ApnsKey[]): void;
  };
  /** Its `/token` is Google's token endpoint. */
  readonly fcm: Server & {
    readonly name: "fcm";
    /** The number of access tokens issued since the start. */
    tokensIssued(): number;
  };
  readonly webpush: Server & {
    readonly name: "webpush";
    /** A subscription, as `pushManager.subscribe` returns it. `applicationServerKey`, which alone may push to it, is base64url. */
    subscribe(options?: {
      readonly applicationServerKey?: string | undefined;
      readonly prefix?: string | undefined;
    }): WebPushSubscription;
    /** Answers pushes to it with 410 from now on. `id`: the last part of its endpoint. Returns false if it is unknown. */
    unsubscribe(id: string): boolean;
  };
  readonly control: Pick<Server, "url" | "stop">;
  /** PEM of the authority that signed the simulators' certificates. */
  readonly ca: string;
  /** Replaces the script: an array of rules or `{ rules, seed? }`. Throws an InvalidScript with every problem in `errors`. */
  script(rules: unknown): void;
  /** Oldest first. */
  pushes(filter?: PushFilter): Push[];
  stats(): Partial<Record<SimulatedProvider, ProviderStats>>;
  /** Deletes the pushes and the script. */
  clear(): void;
  /** The Live Activities of the phones. */
  readonly instances: {
    /** Oldest first; `token`: those with this token, for updates or of their start. */
    list(token?: string): Instance[];
  };
  /** The broadcast channels of all apps. */
  readonly channels: { list(): SimulatedChannel[] };
  stop(): Promise<void>;
}
