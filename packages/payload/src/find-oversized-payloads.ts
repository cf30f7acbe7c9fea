import type { NotificationContent, Platform } from "@herald/contracts";
import { apnsMaxBytes, renderApns } from "./apns.ts";
import { fcmMaxBytes, fcmWeight, renderFcm } from "./fcm.ts";
import type { Origin } from "./render.ts";
import { renderWebPush, webPushMaxBytes } from "./webpush.ts";

type Measure = { readonly max: number; readonly bytes: (openToken: string, locale: string | undefined) => number };

const measures = {
  ios: (content, origin) => {
    const rendering = renderApns(content, origin);
    return { max: apnsMaxBytes, bytes: (token, locale) => Buffer.byteLength(rendering.body(token, locale)) };
  },
  android: (content, origin) => {
    const rendering = renderFcm(content, origin, "android", { ttlSeconds: content.ttl ?? 0, apnsExpiration: "0" });
    const target = { token: "", kind: "token" } as const;
    return { max: fcmMaxBytes, bytes: (token, locale) => fcmWeight(rendering.body(target, token, locale)) };
  },
  web: (content, origin) => {
    const rendering = renderWebPush(content, origin);
    return { max: webPushMaxBytes, bytes: (token, locale) => Buffer.byteLength(rendering.body(token, locale)) };
  },
} satisfies Record<Platform, (content: NotificationContent, origin: Origin) => Measure>;

/** Of one platform: who shortens these looks at the others, too, and rendering the same weight for each language costs as much. */
const maxProblems = 3;

/**
 * Content of so many bytes as JSON fits every platform: a payload is at most three times that (a quotation mark in `data` is escaped
 * twice for FCM) and a kilobyte of Herald's own. Nearly all content is smaller, and rendering it for each platform costs a tenth of
 * accepting it.
 */
export const surelyFitsBytes = Math.floor((Math.min(apnsMaxBytes, fcmMaxBytes, webPushMaxBytes) - 1_024) / 3);

/**
 * What is too heavy about a notification, in words, for the platforms given and in each of its localizations, up to three of
 * a platform; empty when everything fits. `openTokenBytes` is the length of the tokens that will be signed.
 */
export const findOversizedPayloads = (
  content: NotificationContent,
  origin: Origin,
  platforms: readonly Platform[],
  openTokenBytes: number,
): string[] => {
  if (Buffer.byteLength(JSON.stringify(content)) <= surelyFitsBytes) return [];
  const openToken = "x".repeat(openTokenBytes);
  const locales = [undefined, ...Object.keys(content.localizations ?? {})];
  return platforms.flatMap((platform) => {
    const { max, bytes } = measures[platform](content, origin);
    const problems: string[] = [];
    for (const locale of locales) {
      const weight = bytes(openToken, locale);
      const words = locale === undefined ? "" : ` in ${locale}`;
      if (weight > max)
        problems.push(
          `notification: renders to ${weight} bytes for ${platform}${words}, at most ${max} fit: shorten body or data`,
        );
      if (problems.length === maxProblems) break;
    }
    return problems;
  });
};
