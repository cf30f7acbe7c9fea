import { type VapidKeyStatus, vapidKeyId, WebPushSettings } from "@herald/contracts";
import { HeraldError } from "@herald/kit";
import {
  type CheckedSettings,
  elsewhereProblems,
  elsewhereView,
  type SettingsRules,
  schemaProblems,
} from "../settings-problems.ts";
import { type KeyRing, keysOf, makeCurrent, newRing, toRingKey } from "./key-ring.ts";
import { newVapidKeys, publicKeyOf, type VapidKeys } from "./vapid-keys.ts";

/** As they are stored: the current pair, where settings from before there were several have theirs, and beside it all keys. */
export type CompleteWebPushSettings = WebPushSettings & VapidKeys & { readonly ring?: KeyRing };

/** A pair as it is given: its private half is enough. */
type GivenPair = { readonly public_key?: string | undefined; readonly private_key?: string | undefined };

/** All keys of settings. Those without a ring have one key, which is as old as they are. */
export const ringOf = ({ ring, public_key, private_key }: CompleteWebPushSettings, since: Date): KeyRing =>
  ring?.current.public_key === public_key ? ring : newRing({ public_key, private_key }, since);

export const withRing = (settings: CompleteWebPushSettings, ring: KeyRing): CompleteWebPushSettings => ({
  ...settings,
  public_key: ring.current.public_key,
  private_key: ring.current.private_key,
  ring,
});

/** A pair that was given, whole, or what is wrong with it. */
export const checkPair = ({ public_key, private_key }: GivenPair): { keys?: VapidKeys; problems: string[] } => {
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
 * Checks what an operator puts, and completes it. Without keys, those of `previous` stay, because every subscription is
 * bound to the key that it was made with; with another pair they stay too, as earlier ones. Where there are none yet, new ones
 * are made.
 */
export function checkWebPushSettings(
  input: unknown,
  rules: SettingsRules,
  previous?: KeyRing,
): CheckedSettings<CompleteWebPushSettings> {
  const parsed = WebPushSettings.safeParse(input);
  if (!parsed.success) return { ok: false, problems: schemaProblems(parsed.error) };
  const problems = elsewhereProblems(parsed.data, rules);
  const given = checkPair(parsed.data);
  problems.push(...given.problems);
  if (problems.length > 0) return { ok: false, problems };
  const keys = given.keys ?? previous?.current ?? newVapidKeys();
  try {
    const ring = previous ? makeCurrent(previous, toRingKey(keys, rules.now), rules.now) : newRing(keys, rules.now);
    return { ok: true, settings: withRing({ ...parsed.data, ...keys }, ring) };
  } catch (error) {
    if (error instanceof HeraldError) return { ok: false, problems: [...error.messages] };
    throw error;
  }
}

/** A key as it may be shown. */
export type ShownKey = {
  readonly id: string;
  readonly public_key: string;
  readonly status: VapidKeyStatus;
  readonly created_at: string;
  readonly current_since?: string;
};

export const shownKeys = (ring: KeyRing): ShownKey[] =>
  keysOf(ring).map(({ status, key: { private_key: _, ...key } }) => ({ ...key, status }));

/** What may be shown; browsers need the public key to subscribe. */
export function webPushPublicView({ subject, public_key, ring, ...elsewhere }: CompleteWebPushSettings) {
  return {
    subject,
    public_key,
    ...(ring ? { keys: shownKeys(ring) } : {}),
    ...elsewhereView(elsewhere),
  };
}

/** The same, read back: what gateways tell browsers. Views from before there were several keys show one. */
export const publishedKeys = (view: Readonly<Record<string, unknown>>) => {
  const { keys, public_key: publicKey } = view as Partial<ReturnType<typeof webPushPublicView>>;
  if (keys) return keys.map(({ id, public_key, status }) => ({ id, publicKey: public_key, status }));
  return publicKey === undefined ? [] : [{ id: vapidKeyId(publicKey), publicKey, status: "current" as const }];
};

const samePoint = (a: string, b: string) => Buffer.from(a, "base64url").equals(Buffer.from(b, "base64url"));
