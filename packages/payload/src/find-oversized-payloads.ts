import { type NotificationContent, type Platform, type Provider, providerOf } from "@herald/contracts";
import { apnsMaxBytes, apnsMaxBytesOf, renderApns } from "./apns.ts";
import { renderDeclarative } from "./declarative.ts";
import { fcmMaxBytes, fcmWeight, renderFcm } from "./fcm.ts";
import { drawnForm, fullForm } from "./push-form.ts";
import { type BodyOf, type PushForm, type PushOrigin, plainForm } from "./render.ts";
import { renderWebPush, webPushMaxBytes } from "./webpush.ts";

type Measure = {
  readonly provider: Provider;
  /** The platform as error messages name it. */
  readonly as: string;
  readonly max: number;
  readonly bytes: (openToken: string, locale: string | undefined) => number;
};

const drawnByApp = "android, drawn by the app";

/** The payloads for each provider. FCM serves every platform: a project with FCM may have devices of each. */
const measuresOf = (content: NotificationContent, origin: PushOrigin, site: string | undefined): Measure[] => {
  // A device that reports and shows buttons gets all that another one gets, and more; on Android it gets another form.
  const [full, drawn] = [fullForm(content), drawnForm(content)];
  const byFcm = (platform: Platform, as: string, form: PushForm = full): Measure => {
    const lifetime = { ttlSeconds: content.ttl ?? 0, apnsExpiration: "0" };
    const { body } = renderFcm(content, origin, platform, lifetime, form);
    const target = { token: "", kind: "token" } as const;
    return { provider: "fcm", as, max: fcmMaxBytes, bytes: (token, locale) => fcmWeight(body(target, token, locale)) };
  };
  const weigh = (body: BodyOf) => (token: string, locale: string | undefined) => Buffer.byteLength(body(token, locale));
  const apns: Measure = {
    ...{ provider: "apns", as: "ios", max: apnsMaxBytesOf(content) },
    bytes: weigh(renderApns(content, origin, full).body),
  };
  if (content.push_type !== undefined) return [apns];
  const declarative =
    site === undefined
      ? undefined
      : renderDeclarative(content, origin, site, full.receipt === undefined ? plainForm : { receipt: full.receipt });
  return [
    apns,
    byFcm("android", "android", plainForm),
    ...(drawn === plainForm ? [] : [byFcm("android", drawnByApp, drawn)]),
    { provider: "webpush", as: "web", max: webPushMaxBytes, bytes: weigh(renderWebPush(content, origin, full).body) },
    byFcm("ios", "ios through FCM"),
    byFcm("web", "web through FCM"),
    {
      ...{ provider: "webpush", as: "web on Safari", max: webPushMaxBytes },
      bytes: (token, locale) => Buffer.byteLength(declarative?.(token, locale) ?? ""),
    },
  ];
};

type Weight = { readonly bytes: number; readonly max: number };

/**
 * The size of each platform's own payload for a device with this locale and all capabilities, and its provider's limit. `drawn`: of the
 * message that an Android app draws itself; absent: none does.
 */
export const weighPayloads = (
  content: NotificationContent,
  origin: PushOrigin,
  openTokenBytes: number,
  locale: string | undefined,
): Partial<Record<Platform | "drawn", Weight>> => {
  const measures = measuresOf(content, origin, undefined);
  const openToken = "x".repeat(openTokenBytes);
  const names = { ios: "ios", android: "android", drawn: drawnByApp, web: "web" };
  return Object.fromEntries(
    Object.entries(names).flatMap(([name, wanted]) => {
      const found = measures.find(({ as }) => as === wanted);
      return found === undefined ? [] : [[name, { bytes: found.bytes(openToken, locale), max: found.max }]];
    }),
  );
};

/** Maximum per platform: fixing these shortens the others too, and each language costs a rendering. */
const maxProblems = 3;

/**
 * Content of up to this many bytes of JSON fits every platform, if no device gets more than its plain form: a payload has at most three
 * times as many (a quotation mark in `data` is escaped twice for FCM), and a kilobyte of Herald's own. Nearly all content is smaller, and
 * rendering it for each platform costs a tenth of accepting it.
 */
export const surelyFitsBytes = Math.floor((Math.min(apnsMaxBytes, fcmMaxBytes, webPushMaxBytes) - 1_024) / 3);

/** The same for a project with a site: a link is in a declarative payload twice, once with three bytes for one. */
export const surelyFitsSiteBytes = Math.floor((webPushMaxBytes - 1_024) / 4);

/**
 * Error messages for payloads that exceed a provider's limit: for every platform that the providers of these platforms serve, and every
 * localization, at most three per platform. `openTokenBytes`: the length of the tokens that will be signed. `site`: the origin of the
 * project's pages, if it has one.
 */
export const findOversizedPayloads = (
  content: NotificationContent,
  origin: PushOrigin,
  platforms: readonly Platform[],
  openTokenBytes: number,
  site?: string,
): string[] => {
  const openToken = "x".repeat(openTokenBytes);
  const locales = [undefined, ...Object.keys(content.localizations ?? {})];
  const providers = new Set(platforms.map((platform) => providerOf[platform]));
  return measuresOf(content, origin, site).flatMap(({ provider, as, max, bytes }) => {
    if (!providers.has(provider)) return [];
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
