import { createECDH, ECDH, randomBytes } from "node:crypto";

/** What a browser's `PushSubscription.toJSON()` gives. */
export interface WebPushSubscription {
  readonly endpoint: string;
  readonly expirationTime: null;
  /** Base64url: the browser's public key, and the secret that it shares with its app's server. */
  readonly keys: { readonly p256dh: string; readonly auth: string };
}

/** A browser's side of a subscription. */
export interface Subscriber {
  readonly id: string;
  readonly endpoint: string;
  readonly ecdh: ECDH;
  readonly auth: Buffer;
  /** The only VAPID key that may push to it, base64url: the one that the app named, else the first that pushed to it. */
  applicationServerKey: string | undefined;
}

export interface SubscribeOptions {
  readonly applicationServerKey?: string | undefined;
  /** What the endpoint's last part begins with, so that a script can tell subscriptions apart. */
  readonly prefix?: string | undefined;
}

/** Whether a browser would take it. */
export const isApplicationServerKey = (key: string): boolean => {
  try {
    ECDH.convertKey(key, "prime256v1", "base64url");
    return Buffer.from(key, "base64url").length === 65;
  } catch {
    return false;
  }
};

/** The subscriptions of the simulated browsers; they live as long as the process. */
export function createSubscriptions(origin: () => string) {
  const active = new Map<string, Subscriber>();
  const gone = new Set<string>();

  return {
    /** @throws TypeError for an `applicationServerKey` that is none, as a browser would. */
    subscribe({ applicationServerKey, prefix = "" }: SubscribeOptions = {}): WebPushSubscription {
      if (applicationServerKey !== undefined && !isApplicationServerKey(applicationServerKey))
        throw new TypeError("applicationServerKey: must be an uncompressed P-256 key in base64url");
      const ecdh = createECDH("prime256v1");
      const p256dh = ecdh.generateKeys().toString("base64url");
      const auth = randomBytes(16);
      const id = prefix + randomBytes(16).toString("base64url");
      const endpoint = `${origin()}/push/${id}`;
      active.set(id, { id, endpoint, ecdh, auth, applicationServerKey });
      return { endpoint, expirationTime: null, keys: { p256dh, auth: auth.toString("base64url") } };
    },

    /** @returns false if there was no such subscription */
    unsubscribe(id: string): boolean {
      const known = active.delete(id);
      if (known) gone.add(id);
      return known;
    },

    find: (id: string): Subscriber | "gone" | undefined => active.get(id) ?? (gone.has(id) ? "gone" : undefined),
  };
}
