import { type VapidKeyStatus, vapidKeyId } from "@herald/contracts";
import { HeraldError } from "@herald/kit";
import type { VapidKeys } from "./vapid-keys.ts";

/** A pair with its history; times are ISO. */
export type RingKey = VapidKeys & {
  readonly id: string;
  readonly created_at: string;
  /** Since when it is, or was for the last time, what browsers subscribe with. */
  readonly current_since?: string;
};

/** All keys of a project: every subscription is bound to the one that it was made with, so none goes while it is needed. */
export type KeyRing = {
  readonly current: RingKey;
  readonly next?: RingKey;
  /** Oldest first. */
  readonly earlier: readonly RingKey[];
  /** Ids of keys whose private half is gone. */
  readonly retired: readonly string[];
  /** Whose are the subscriptions that name no key: the project's first one's. */
  readonly unnamed: string;
};

/** Rotations take months, and each key is one more that may leak. */
const maxKeys = 10;
/** Subscriptions that old have long ended. */
const maxRetired = 100;

export const toRingKey = (keys: VapidKeys, at: Date): RingKey => ({
  id: vapidKeyId(keys.public_key),
  public_key: keys.public_key,
  private_key: keys.private_key,
  created_at: at.toISOString(),
});

/** The ring of a project with one key. */
export const newRing = (keys: VapidKeys, at: Date): KeyRing => {
  const current = { ...toRingKey(keys, at), current_since: at.toISOString() };
  return { current, earlier: [], retired: [], unnamed: current.id };
};

/** Every key, what comes first first. */
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

/** Puts a key in line for being the current one. The same ring when it is there already. @throws HeraldError */
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

/** Gives browsers another key from now on; the one that they had goes on serving its subscriptions. */
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

/** The same by the id of a key that is there. @throws HeraldError */
export const promote = (ring: KeyRing, id: string, at: Date): KeyRing => {
  const found = findKey(ring, id);
  if (!found) throw noSuchKey(ring, id);
  return makeCurrent(ring, found.key, at);
};

/** Forgets a key; what is sent to its subscriptions fails from now on. The same ring when it is forgotten. @throws HeraldError */
export const retire = (ring: KeyRing, id: string): KeyRing => {
  if (ring.current.id === id)
    throw new HeraldError("vapid-key-current", "key: it is the current one; make another one current first");
  if (!findKey(ring, id)) {
    if (ring.retired.includes(id)) return ring;
    throw noSuchKey(ring, id);
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
 * The key that signs for a subscription made with `id`; undefined when it is retired. A subscription that names none, or one
 * that this ring has never held because settings were deleted and set again, is the first key's.
 */
export const keyFor = (ring: KeyRing, id: string | undefined): RingKey | undefined => {
  const named = id === undefined ? undefined : findKey(ring, id)?.key;
  if (named || (id !== undefined && ring.retired.includes(id))) return named;
  return findKey(ring, ring.unnamed)?.key;
};

const noSuchKey = (ring: KeyRing, id: string) =>
  new HeraldError(
    "vapid-key-not-found",
    ring.retired.includes(id)
      ? "key: it was retired, and its private half is gone"
      : "key: the project has none of this id",
  );
