import type { Provider } from "@herald/contracts";
import { apnsPublicView, checkApnsSettings } from "../providers/apns/settings.ts";
import type { SettingsRules } from "../providers/settings-problems.ts";

/** Settings that can be used and what of them may be shown, or every problem in words. */
export type CheckedProvider =
  | { readonly settings: Record<string, unknown>; readonly view: Record<string, unknown> }
  | { readonly problems: readonly string[] };

/** Checks what was put for a provider: that it is complete, that keys parse, and that it may be used here. */
export const checkSettings = (provider: Provider, settings: unknown, rules: SettingsRules): CheckedProvider => {
  if (provider !== "apns") return { problems: [`${provider} cannot be sent with yet: put settings for apns`] };
  const checked = checkApnsSettings(settings, rules);
  return checked.ok
    ? { settings: { ...checked.settings }, view: apnsPublicView(checked.settings) }
    : { problems: checked.problems };
};
