import { WebPushSettings } from "@herald/contracts";
import { type CheckedSettings, elsewhereProblems, type SettingsRules, schemaProblems } from "../settings-problems.ts";
import { newVapidKeys, publicKeyOf, type VapidKeys } from "./vapid-keys.ts";

export type CompleteWebPushSettings = WebPushSettings & VapidKeys;

/**
 * Checks what an operator puts, and completes it: without keys, those of `previous` stay, because every subscription is
 * bound to the key that it was made with; where there are none yet, new ones are made.
 */
export function checkWebPushSettings(
  input: unknown,
  rules: SettingsRules,
  previous?: VapidKeys,
): CheckedSettings<CompleteWebPushSettings> {
  const parsed = WebPushSettings.safeParse(input);
  if (!parsed.success) return { ok: false, problems: schemaProblems(parsed.error) };
  const { public_key, private_key } = parsed.data;
  const problems = elsewhereProblems(parsed.data, rules);
  const derived = private_key === undefined ? undefined : publicKeyOf(private_key);
  if (private_key !== undefined && derived === undefined)
    problems.push("private_key: must be a VAPID private key: 32 bytes as base64url");
  if (private_key === undefined && public_key !== undefined)
    problems.push("private_key: is required with public_key; leave both out to have a pair made");
  if (derived !== undefined && public_key !== undefined && !samePoint(derived, public_key))
    problems.push("public_key: does not belong to private_key");
  if (problems.length > 0) return { ok: false, problems };
  const keys: VapidKeys =
    private_key !== undefined && derived !== undefined
      ? { public_key: derived, private_key }
      : (previous ?? newVapidKeys());
  const { public_key: publicHalf, private_key: privateHalf } = keys;
  return { ok: true, settings: { ...parsed.data, public_key: publicHalf, private_key: privateHalf } };
}

/** What may be shown; browsers need the public key to subscribe. */
export function webPushPublicView({ subject, public_key, endpoint }: CompleteWebPushSettings): Record<string, string> {
  return { subject, public_key, ...(endpoint === undefined ? {} : { endpoint }) };
}

const samePoint = (a: string, b: string) => Buffer.from(a, "base64url").equals(Buffer.from(b, "base64url"));
