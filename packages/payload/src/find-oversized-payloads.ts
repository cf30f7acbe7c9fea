import { type NotificationContent, type Platform, type Provider, providerOf } from "@herald/contracts";
import { apnsMaxBytes, renderApns } from "./apns.ts";
import { fcmMaxBytes, fcmWeight, renderFcm } from "./fcm.ts";
import type { Origin } from "./render.ts";
import { renderWebPush, webPushMaxBytes } from "./webpush.ts";

type Measure = { readonly max: number; readonly bytes: (openToken: string, locale: string | undefined) => number };

const byFcm =
  (platform: Platform) =>
  (content: NotificationContent, origin: Origin): Measure => {
    const rendering = renderFcm(content, origin, platform, { ttlSeconds: content.ttl ?? 0, apnsExpiration: "0" });
    const target = { token: "", kind: "token" } as const;
    return { max: fcmMaxBytes, bytes: (token, locale) => fcmWeight(rendering.body(target, token, locale)) };
  };

/** What a provider is sent for a platform. FCM serves every platform: a project that has it may have such devices. */
const measures: readonly {
  readonly provider: Provider;
  readonly as: string;
  readonly measure: (content: NotificationContent, origin: Origin) => Measure;
}[] = [
  {
    provider: "apns",
    as: "ios",
    measure: (content, origin) => {
      const rendering = renderApns(content, origin);
      return { max: apnsMaxBytes, bytes: (token, locale) => Buffer.byteLength(rendering.body(token, locale)) };
    },
  },
  { provider: "fcm", as: "android", measure: byFcm("android") },
  {
    provider: "webpush",
    as: "web",
    measure: (content, origin) => {
      const rendering = renderWebPush(content, origin);
      return { max: webPushMaxBytes, bytes: (token, locale) => Buffer.byteLength(rendering.body(token, locale)) };
    },
  },
  { provider: "fcm", as: "ios through FCM", measure: byFcm("ios") },
  { provider: "fcm", as: "web through FCM", measure: byFcm("web") },
];

/** Of one platform: who shortens these looks at the others, too, and rendering the same weight for each language costs as much. */
const maxProblems = 3;

/**
 * Content of so many bytes as JSON fits every platform: a payload is at most three times that (a quotation mark in `data` is escaped
 * twice for FCM) and a kilobyte of Herald's own. Nearly all content is smaller, and rendering it for each platform costs a tenth of
 * accepting it.
 */
export const surelyFitsBytes = Math.floor((Math.min(apnsMaxBytes, fcmMaxBytes, webPushMaxBytes) - 1_024) / 3);

/**
 * What is too heavy about a notification, in words, for all that the providers of these platforms serve and in each of its localizations, up to
 * three of a platform; empty when everything fits. `openTokenBytes` is the length of the tokens that will be signed.
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
  const providers = new Set(platforms.map((platform) => providerOf[platform]));
  return measures.flatMap(({ provider, as, measure }) => {
    if (!providers.has(provider)) return [];
    const { max, bytes } = measure(content, origin);
    const problems: string[] = [];
    for (const locale of locales) {
      const weight = bytes(openToken, locale);
      const words = locale === undefined ? "" : ` in ${locale}`;
      if (weight > max)
        problems.push(
          `notification: renders to ${weight} bytes for ${as}${words}, at most ${max} fit: shorten body or data`,
        );
      if (problems.length === maxProblems) break;
    }
    return problems;
  });
};
