import type { Provider } from "@herald/contracts";
import { apnsPublicView, checkApnsSettings } from "./apns/settings.ts";
import { checkFcmSettings, fcmPublicView } from "./fcm/settings.ts";
import type { CheckedSettings, SettingsRules } from "./settings-problems.ts";
import type { KeyRing } from "./webpush/key-ring.ts";
import { checkWebPushSettings, webPushPublicView } from "./webpush/settings.ts";

/** Settings that can be used and what of them may be shown, or every problem in words. */
export type CheckedProvider =
  | { readonly settings: Record<string, unknown>; readonly view: Record<string, unknown> }
  | { readonly problems: readonly string[] };

/**
 * Checks what was put for a provider: that it is complete, that keys parse, and that it may be used here. `previousKeys` are those
 * of the Web Push settings that it replaces.
 */
export const checkSettings = (
  provider: Provider,
  settings: unknown,
  rules: SettingsRules,
  previousKeys: KeyRing | undefined,
): CheckedProvider => {
  switch (provider) {
    case "apns":
      return shown(checkApnsSettings(settings, rules), apnsPublicView);
    case "fcm":
      return shown(checkFcmSettings(settings, rules), fcmPublicView);
    case "webpush":
      // Browsers have subscribed to the key there is, so one that is not replaced stays.
      return shown(checkWebPushSettings(settings, rules, previousKeys), webPushPublicView);
  }
};

const shown = <Settings extends object>(
  checked: CheckedSettings<Settings>,
  view: (settings: Settings) => Record<string, unknown>,
): CheckedProvider =>
  checked.ok
    ? { settings: { ...checked.settings } as Record<string, unknown>, view: view(checked.settings) }
    : { problems: checked.problems };
