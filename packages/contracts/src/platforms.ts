import { z } from "zod";
import { namedBody } from "./named.ts";

export const Platform = z.enum(["ios", "android", "web"]).meta({ id: "Platform" });
export type Platform = z.infer<typeof Platform>;

/** The provider that serves a platform. */
export const Provider = z.enum(["apns", "fcm", "webpush"]).meta({ id: "Provider" });
export type Provider = z.infer<typeof Provider>;

export const providerOf = { ios: "apns", android: "fcm", web: "webpush" } as const satisfies Record<Platform, Provider>;

/** The providers that can serve a platform, its own first. Flutter, React Native and Firebase apps have FCM tokens on every platform. */
export const providersOf: Readonly<Record<Platform, readonly Provider[]>> = {
  ios: ["apns", "fcm"],
  android: ["fcm"],
  web: ["webpush", "fcm"],
};

/** A device, or a batch of devices. Without `provider`, the platform's own provider serves it. */
export type Served = { readonly platform: Platform; readonly provider?: Provider | undefined };

export const servingProvider = ({ platform, provider }: Served): Provider => provider ?? providerOf[platform];

/** `provider` in its stored form: absent if it is the platform's own. */
export const otherProvider = ({ platform, provider }: Served): { readonly provider?: Provider } =>
  provider === undefined || provider === providerOf[platform] ? {} : { provider };

/** The form of an APNs device token. */
export const apnsToken = /^([0-9a-fA-F]{2}){8,100}$/;

/** Of a Firebase Installation ID, which may consist of hexadecimal digits by chance. */
const installationIdLength = 22;

/** A PushToken's. */
export const maxTokenLength = 2_048;

/** As a browser writes it: host in lower case and ASCII, no default port. A request has no fragment, so two endpoints never differ in one. */
const canonicalEndpoint = (endpoint: string): string => {
  const url = URL.parse(endpoint);
  if (url === null) return endpoint;
  url.hash = "";
  return url.href.length > maxTokenLength ? endpoint : url.href;
};

/**
 * The form in which a push token is stored, compared and sent. APNs tokens are bytes, which apps spell as hexadecimal digits of either case;
 * Web Push endpoints are URLs; FCM tokens are texts. Without a provider the text tells which it is: a registration token of FCM has a `:`.
 */
export const canonicalToken = (token: string, provider?: Provider): string => {
  if (provider === "fcm") return token;
  if (apnsToken.test(token))
    return provider === "apns" || token.length !== installationIdLength ? token.toLowerCase() : token;
  return provider === "webpush" || /^https?:/i.test(token) ? canonicalEndpoint(token) : token;
};

export const platformOf = { apns: "ios", fcm: "android", webpush: "web" } as const satisfies Record<Provider, Platform>;

/** `direct` when every target is a device, a token or a user; direct sends do not wait behind broadcasts. */
export const Lane = z.enum(["direct", "broadcast"]);
export type Lane = z.infer<typeof Lane>;

export const ApnsEnvironment = z.enum(["production", "sandbox"]).meta({ id: "ApnsEnvironment" });
export type ApnsEnvironment = z.infer<typeof ApnsEnvironment>;

/** The kind of an FCM device's `token`: a registration token or a Firebase Installation ID. */
export const FcmTokenKind = z.enum(["token", "fid"]).meta({ id: "FcmTokenKind" });
export type FcmTokenKind = z.infer<typeof FcmTokenKind>;

export const appIdPattern = /^[A-Za-z0-9._-]{1,255}$/;

/** The id of an app: a bundle id of Apple or a package of Android. */
export const AppId = z
  .string()
  .regex(appIdPattern, "must be a bundle id or a package, such as com.example.app")
  .meta({ id: "AppId", examples: ["com.example.app"] });
export type AppId = z.infer<typeof AppId>;

/** `btoa`, which many pages use for the keys, writes the same bytes with `+` and `/`. */
const base64url = z.string().overwrite((text) => text.replaceAll("+", "-").replaceAll("/", "_"));
/** Base64url with or without padding is one key. */
export const withoutPadding = (base64: string): string => base64.replace(/=+$/, "");

/** The keys of a Web Push subscription (RFC 8291), base64url: an uncompressed P-256 point and 16 bytes. */
export const WebPushKeys = namedBody(
  "WebPushKeys",
  {
    p256dh: base64url
      .regex(/^[A-Za-z0-9_-]{87}=?$/, "must be a P-256 public key: 65 bytes as base64url")
      .overwrite(withoutPadding),
    auth: base64url.regex(/^[A-Za-z0-9_-]{22}(==)?$/, "must be 16 bytes as base64url").overwrite(withoutPadding),
  },
  {
    examples: [
      {
        p256dh: "BPCaFr0C6sVCfbf6zWAh-X7CvIzLpkMnFKFmpYqdJHNlnGxfOZL5OtqGWZKPQG92fgJUmPwR_8CQf0rDGxwTE3s",
        auth: "dGhpcyBpcyAxNiBieXRlcw",
      },
    ],
  },
);
export type WebPushKeys = z.infer<typeof WebPushKeys>;
