import type { DryRun, Platform, SendV1 } from "@herald/contracts";
import { renderApns, renderFcm, renderWebPush } from "@herald/payload";

/** Placeholders for the values of a device. */
const placeholders = { device: "<push token>", openToken: "<open token>" };

const samples: Record<Platform, (command: SendV1, locale: string | undefined) => string> = {
  ios: ({ content, ...origin }, locale) => renderApns(content, origin).body(placeholders.openToken, locale),
  android: ({ content, expiresAt, acceptedAt, sendAt, ...origin }, locale) => {
    const ttlMs = Date.parse(expiresAt) - Date.parse(sendAt ?? acceptedAt);
    const target = { token: placeholders.device, kind: "token" } as const;
    const lifetime = { ttlSeconds: Math.floor(ttlMs / 1000), apnsExpiration: "0" };
    return renderFcm(content, origin, "android", lifetime).body(target, placeholders.openToken, locale);
  },
  web: ({ content, ...origin }, locale) => renderWebPush(content, origin).body(placeholders.openToken, locale),
};

/** One payload per platform, as its provider would receive it for a device with this locale; absent: without localization. */
export const renderSamples = (command: SendV1, platforms: readonly Platform[], locale?: string): DryRun["rendered"] =>
  Object.fromEntries(platforms.map((platform) => [platform, JSON.parse(samples[platform](command, locale))]));
