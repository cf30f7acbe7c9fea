import { createECDH, ECDH, randomBytes } from "node:crypto";
import { appendFileSync, existsSync, readFileSync } from "node:fs";
import { z } from "zod";
import type { WebPushSubscription } from "../types.ts";

/** A browser's side of a subscription. */
export interface Subscriber {
  readonly id: string;
  readonly ecdh: ECDH;
  readonly auth: Buffer;
  /** The only VAPID key that may push to this subscription, base64url: the app's key, else the key of the first push. */
  applicationServerKey: string | undefined;
}

/** Whether a browser would accept the key. */
const isApplicationServerKey = (key: string): boolean => {
  try {
    ECDH.convertKey(key, "prime256v1", "base64url");
    return Buffer.from(key, "base64url").length === 65;
  } catch {
    return false;
  }
};

export const SubscribeOptions = z.strictObject({
  applicationServerKey: z.string().refine(isApplicationServerKey, "an uncompressed P-256 key in base64url").optional(),
  /** The prefix of the endpoint's last part, so that a script can distinguish subscriptions. */
  prefix: z
    .string()
    .regex(/^[\w-]{1,32}$/, "at most 32 characters of base64url")
    .optional(),
});

/** One line of the file: a subscription as it is now, in base64url, or the id of one that has ended. */
type Line = { readonly id: string; readonly key?: string; readonly auth?: string; readonly vapidKey?: string };

const linesOf = (file: string): Line[] => {
  const text = existsSync(file) ? readFileSync(file, "utf8") : "";
  // A killed process may have left half a line at the end.
  return text.split("\n").flatMap((line) => (line.endsWith("}") ? [JSON.parse(line)] : []));
};

/** The subscriptions of the simulated browsers. With a file they outlive the process, as those of real browsers do. */
export function createSubscriptions(origin: () => string, file?: string) {
  const active = new Map<string, Subscriber>();
  const gone = new Set<string>();
  for (const { id, key, auth, vapidKey } of file === undefined ? [] : linesOf(file)) {
    active.delete(id);
    if (key === undefined || auth === undefined) gone.add(id);
    else {
      const ecdh = createECDH("prime256v1");
      ecdh.setPrivateKey(key, "base64url");
      active.set(id, { id, ecdh, auth: Buffer.from(auth, "base64url"), applicationServerKey: vapidKey });
    }
  }
  const write = (line: Line) => {
    if (file !== undefined) appendFileSync(file, `${JSON.stringify(line)}\n`, { mode: 0o600 });
  };
  const writeActive = ({ id, ecdh, auth, applicationServerKey: vapidKey }: Subscriber) =>
    write({ id, key: ecdh.getPrivateKey("base64url"), auth: auth.toString("base64url"), vapidKey });

  return {
    /** Creates a subscription, as a browser would give to its app. @throws TypeError for an invalid `applicationServerKey`. */
    subscribe({ applicationServerKey, prefix = "" }: z.infer<typeof SubscribeOptions> = {}): WebPushSubscription {
      if (applicationServerKey !== undefined && !isApplicationServerKey(applicationServerKey))
        throw new TypeError("applicationServerKey: must be an uncompressed P-256 key in base64url");
      const ecdh = createECDH("prime256v1");
      const p256dh = ecdh.generateKeys().toString("base64url");
      const auth = randomBytes(16);
      const id = prefix + randomBytes(16).toString("base64url");
      const endpoint = `${origin()}/push/${id}`;
      const subscriber = { id, ecdh, auth, applicationServerKey };
      active.set(id, subscriber);
      writeActive(subscriber);
      return { endpoint, expirationTime: null, keys: { p256dh, auth: auth.toString("base64url") } };
    },

    /** Answers pushes to the subscription with 410 from now on. `id` is the last part of the endpoint. @returns false if it is unknown */
    unsubscribe(id: string): boolean {
      const known = active.delete(id);
      if (known) {
        gone.add(id);
        write({ id });
      }
      return known;
    },

    /** An app that named no key may push with any key first. After that, a push with another key is refused. */
    bind(subscriber: Subscriber, key: string | undefined): void {
      if (subscriber.applicationServerKey !== undefined || key === undefined) return;
      subscriber.applicationServerKey = key;
      writeActive(subscriber);
    },

    find: (id: string): Subscriber | "gone" | undefined => active.get(id) ?? (gone.has(id) ? "gone" : undefined),
  };
}
