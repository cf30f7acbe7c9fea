import { createECDH, createPrivateKey, type KeyObject } from "node:crypto";
import { type VapidKeyStatus, vapidKeyId, WebPushSettings } from "@herald/contracts";
import { existing, HeraldError, LRUCache, notFound } from "@herald/kit";
import { SignJWT } from "jose";
import {
  elsewhereProblems,
  elsewhereView,
  parseSettings,
  refuseProblems,
  type SettingsRules,
} from "../settings-problems.ts";

/** A VAPID key pair (RFC 8292) as browsers and libraries exchange it: raw P-256 in base64url. */
export type RawKeyPair = { readonly public_key: string; readonly private_key: string };

const curveName = "prime256v1";
const scalarBytes = 32;

export function newVapidKeys(): RawKeyPair {
  const ecdh = createECDH(curveName);
  ecdh.generateKeys();
  // Node omits leading zeros, and one key in 256 begins with one.
  const scalar = Buffer.concat([Buffer.alloc(scalarBytes), ecdh.getPrivateKey()]).subarray(-scalarBytes);
  return { public_key: ecdh.getPublicKey("base64url"), private_key: scalar.toString("base64url") };
}

/** The public half of a private key; undefined when the private key is invalid. */
export function publicKeyOf(privateKey: string): string | undefined {
  const scalar = Buffer.from(privateKey, "base64url");
  if (scalar.length !== scalarBytes) return undefined;
  try {
    const ecdh = createECDH(curveName);
    ecdh.setPrivateKey(scalar);
    return ecdh.getPublicKey("base64url");
  } catch {
    return undefined;
  }
}

export function signingKey({ public_key, private_key }: RawKeyPair): KeyObject {
  const point = Buffer.from(public_key, "base64url");
  const [x, y] = [point.subarray(1, 33), point.subarray(33, 65)].map((half) => half.toString("base64url"));
  return createPrivateKey({ key: { kty: "EC", crv: "P-256", x, y, d: private_key }, format: "jwk" });
}

const hourMs = 3_600_000;
/** Push services refuse more than 24 hours. Half of that leaves room for clocks that differ. */
const lifetimeMs = 12 * hourMs;
/** A header is not used longer than this, so that it does not expire in flight. */
const reusedMs = 11 * hourMs;
const maxKept = 256;

/** Signs the sender's VAPID header for each push service (RFC 8292), about twice a day. */
export function createVapid({ subject, ...keys }: RawKeyPair & { readonly subject: string }, now: () => Date) {
  const key = signingKey(keys);
  const known = new LRUCache<string, { readonly header: Promise<string>; readonly signedAt: number }>({ max: maxKept });

  const sign = async (origin: string, at: number): Promise<string> => {
    const jwt = await new SignJWT({ aud: origin, sub: subject, exp: Math.floor((at + lifetimeMs) / 1_000) })
      .setProtectedHeader({ typ: "JWT", alg: "ES256" })
      .sign(key);
    return `vapid t=${jwt}, k=${keys.public_key}`;
  };

  /** The `authorization` for a push service's origin. */
  return (origin: string): Promise<string> => {
    const at = now().getTime();
    const found = known.get(origin);
    const age = found === undefined ? Number.POSITIVE_INFINITY : at - found.signedAt;
    if (found !== undefined && age >= 0 && age < reusedMs) return found.header;
    const header = sign(origin, at);
    known.set(origin, { header, signedAt: at });
    return header;
  };
}

/** A key pair with its history. Times are ISO 8601. */
export type RingKey = RawKeyPair & {
  readonly id: string;
  readonly created_at: string;
  /** When the key last became the current one, with which browsers subscribe. */
  readonly current_since?: string;
};

/** All keys of a project. Every subscription is bound to the key that it was made with, so a key stays while subscriptions need it. */
export type KeyRing = {
  readonly current: RingKey;
  readonly next?: RingKey;
  /** Oldest first. */
  readonly earlier: readonly RingKey[];
  /** Ids of keys whose private half was deleted. */
  readonly retired: readonly string[];
  /** The id of the key for subscriptions that name none: the project's first key. */
  readonly unnamed: string;
};

/** Enough, because a rotation takes months. Each further key could leak, too. */
const maxKeys = 10;
/** Subscriptions of older keys ended long ago. */
const maxRetired = 100;

export const toRingKey = (keys: RawKeyPair, at: Date): RingKey => ({
  id: vapidKeyId(keys.public_key),
  public_key: keys.public_key,
  private_key: keys.private_key,
  created_at: at.toISOString(),
});

/** The ring of a project with one key. */
export const newRing = (keys: RawKeyPair, at: Date): KeyRing => {
  const current = { ...toRingKey(keys, at), current_since: at.toISOString() };
  return { current, earlier: [], retired: [], unnamed: current.id };
};

/** All keys, ordered by status (next, current, earlier), then newest first. */
export const keysOf = ({ next, current, earlier }: KeyRing): { status: VapidKeyStatus; key: RingKey }[] => [
  ...(next ? [{ status: "next" as const, key: next }] : []),
  { status: "current", key: current },
  ...earlier.toReversed().map((key) => ({ status: "earlier" as const, key })),
];

export const findKey = (ring: KeyRing, id: string) => keysOf(ring).find(({ key }) => key.id === id);

const full = () =>
  new HeraldError(
    "too-many-vapid-keys",
    `key: the project has ${maxKeys} keys already; retire the ones that no subscription needs`,
  );

/** Stages a key as the next one. Returns the same ring when it is already staged. @throws HeraldError */
export const stage = (ring: KeyRing, key: RingKey): KeyRing => {
  const known = findKey(ring, key.id);
  if (known?.status === "next") return ring;
  if (known)
    throw new HeraldError(
      "vapid-key-staged",
      `key: the project has this one already, as ${known.status}: make it current by its id`,
    );
  if (ring.next)
    throw new HeraldError(
      "vapid-key-staged",
      `key: ${ring.next.id} is staged already; make it current, or retire it, before another is added`,
    );
  if (keysOf(ring).length >= maxKeys) throw full();
  return { ...ring, next: key, retired: ring.retired.filter((id) => id !== key.id) };
};

/** Makes a key the current one, with which browsers subscribe from now on. The former key still serves its subscriptions. */
export const makeCurrent = (ring: KeyRing, key: RingKey, at: Date): KeyRing => {
  const { next, current, earlier, retired, unnamed } = ring;
  if (key.id === current.id) return ring;
  const known = findKey(ring, key.id)?.key ?? key;
  const others = [...earlier, current].filter(({ id }) => id !== key.id);
  if (others.length >= maxKeys) throw full();
  return {
    current: { ...known, current_since: at.toISOString() },
    ...(next && next.id !== key.id ? { next } : {}),
    earlier: others,
    retired: retired.filter((id) => id !== key.id),
    unnamed,
  };
};

/** Makes a key of the ring the current one, by its id. @throws HeraldError */
export const promote = (ring: KeyRing, id: string, at: Date): KeyRing =>
  makeCurrent(ring, existing(findKey(ring, id), () => keyNotFound(ring, id)).key, at);

/** Deletes a key: pushes to its subscriptions fail from now on. Returns the same ring when it is already retired. @throws HeraldError */
export const retire = (ring: KeyRing, id: string): KeyRing => {
  if (ring.current.id === id)
    throw new HeraldError("vapid-key-current", "key: it is the current one; make another one current first");
  if (!findKey(ring, id)) {
    if (ring.retired.includes(id)) return ring;
    throw keyNotFound(ring, id);
  }
  const { next, ...rest } = ring;
  return {
    ...rest,
    ...(next && next.id !== id ? { next } : {}),
    earlier: ring.earlier.filter((key) => key.id !== id),
    retired: [...ring.retired, id].slice(-maxRetired),
  };
};

/**
 * The key that signs for a subscription made with the key `id`; undefined when that is retired. The first key signs for a subscription
 * without key id, or with a key that this ring never had because settings were deleted and set again.
 */
export const keyFor = (ring: KeyRing, id: string | undefined): RingKey | undefined => {
  const named = id === undefined ? undefined : findKey(ring, id)?.key;
  if (named || (id !== undefined && ring.retired.includes(id))) return named;
  return findKey(ring, ring.unnamed)?.key;
};

const keyNotFound = (ring: KeyRing, id: string) =>
  notFound(
    "vapid-key-not-found",
    "key",
    ring.retired.includes(id) ? "it was retired, and its private half is gone" : undefined,
  );

/** Settings as they are stored: all keys are in the ring. */
export type StoredWebPushSettings = Omit<WebPushSettings, "public_key" | "private_key"> & { readonly ring: KeyRing };

/** Completes a key pair from a request, or returns its problems. */
export const checkPair = ({
  public_key,
  private_key,
}: Partial<RawKeyPair>): { keys?: RawKeyPair; problems: string[] } => {
  if (private_key === undefined)
    return {
      problems:
        public_key === undefined
          ? []
          : ["private_key: is required with public_key; leave both out to have a pair made"],
    };
  const derived = publicKeyOf(private_key);
  if (derived === undefined) return { problems: ["private_key: must be a VAPID private key: 32 bytes as base64url"] };
  if (public_key !== undefined && !samePoint(derived, public_key))
    return { problems: ["public_key: does not belong to private_key"] };
  return { keys: { public_key: derived, private_key }, problems: [] };
};

/**
 * Checks new settings, and completes them. The keys of `previous` stay, because every subscription is bound to the key that it was
 * made with; if the settings contain another pair, they become earlier keys. Without any keys, creates a pair. @throws HeraldError
 */
export function checkWebPushSettings(input: unknown, rules: SettingsRules, previous?: KeyRing): StoredWebPushSettings {
  const { public_key, private_key, ...settings } = parseSettings(WebPushSettings, input);
  const given = checkPair({ public_key, private_key });
  refuseProblems([...elsewhereProblems(settings, rules), ...given.problems]);
  const keys = given.keys ?? previous?.current ?? newVapidKeys();
  const ring = previous ? makeCurrent(previous, toRingKey(keys, rules.now), rules.now) : newRing(keys, rules.now);
  return { ...settings, ring };
}

/** The parts of keys that may be shown. */
export const shownKeys = (ring: KeyRing) =>
  keysOf(ring).map(({ status, key: { private_key: _, ...key } }) => ({ ...key, status }));

/** The part of the settings that may be shown. Browsers need the public key to subscribe. */
export const webPushPublicView = ({ subject, ring, site, ...elsewhere }: StoredWebPushSettings) => ({
  subject,
  ...(site !== undefined && { site }),
  public_key: ring.current.public_key,
  keys: shownKeys(ring),
  ...elsewhereView(elsewhere),
});

/** The site in a stored view, which gateways need to weigh payloads. */
export const publishedSite = (view: Readonly<Record<string, unknown>>) =>
  (view as ReturnType<typeof webPushPublicView>).site;

/** The origin of the push service in a stored view. */
export const publishedOrigin = ({ endpoint }: Readonly<Record<string, unknown>>): string | undefined =>
  typeof endpoint === "string" ? URL.parse(endpoint)?.origin : undefined;

/** The keys in a stored view, as gateways give them to browsers. */
export const publishedKeys = (view: Readonly<Record<string, unknown>>) =>
  (view as ReturnType<typeof webPushPublicView>).keys.map(({ id, public_key, status }) => ({
    id,
    publicKey: public_key,
    status,
  }));

const samePoint = (a: string, b: string) => Buffer.from(a, "base64url").equals(Buffer.from(b, "base64url"));
