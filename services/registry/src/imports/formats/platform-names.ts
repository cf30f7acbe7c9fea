import { type ApnsEnvironment, cutText, type Platform, type Provider } from "@herald/contracts";

/** What the name of a platform or push service says of a device. */
export type PlatformFields = {
  readonly platform: Platform;
  readonly provider?: Provider;
  readonly environment?: ApnsEnvironment;
};

/** Devices that Herald cannot push to, in words. */
export type UnsupportedPlatform = { readonly unsupported: string };

const ios: PlatformFields = { platform: "ios" };
const android: PlatformFields = { platform: "android" };
const web: PlatformFields = { platform: "web" };
const unsupported = (words: string): UnsupportedPlatform => ({ unsupported: words });

const email = unsupported("email addresses");
const sms = unsupported("phone numbers (SMS)");
const amazonDevices = unsupported("Amazon devices (ADM)");
const baidu = unsupported("devices of Baidu Cloud Push");
const huawei = unsupported("Huawei devices (HMS)");
const windows = unsupported("Windows devices (WNS)");
const windowsPhone = unsupported("Windows Phone (MPNS)");
const macOs = unsupported("apps of macOS");
const voip = unsupported("VoIP tokens, which the app sends to Herald with `PUT /devices/{id}/tokens/voip`");
export const oldSafari = unsupported("Safari's own push before Web Push");

/** By {@link plainName}. */
const platforms: ReadonlyMap<string, PlatformFields | UnsupportedPlatform> = new Map(
  Object.entries({
    ios,
    iphone: ios,
    ipad: ios,
    ipados: ios,
    apple: ios,
    apns: ios,
    iospush: ios,
    android,
    gcm: android,
    fcm: android,
    fcmv1: android,
    androidpush: android,
    web,
    browser: web,
    webpush: web,
    chrome: web,
    chromepush: web,
    firefoxpush: web,
    safaripush: web,
    email,
    sms,
    voice: unsupported("phone calls"),
    inapp: unsupported("messages inside the app"),
    custom: unsupported("custom channels"),
    adm: amazonDevices,
    amazon: amazonDevices,
    fireospush: amazonDevices,
    alexapush: unsupported("Alexa"),
    baidu,
    huawei,
    huaweipush: huawei,
    hms: huawei,
    xiaomi: unsupported("Xiaomi devices (Mi Push)"),
    wns: windows,
    windows,
    windowpush: windows,
    windowspush: windows,
    winrt: windows,
    mpns: windowsPhone,
    winphone: windowsPhone,
    macos: macOs,
    macossandbox: macOs,
    macospush: macOs,
    osx: macOs,
    tvos: unsupported("apps of tvOS"),
    watchos: unsupported("apps of watchOS"),
    apnsvoip: voip,
    apnsvoipsandbox: voip,
    safarilegacypush: oldSafari,
    chromeextension: unsupported("Chrome apps and extensions"),
    expo: unsupported("Expo's push service, whose tokens no provider knows"),
  }),
);

/** Names that differ only in upper and lower case, spaces, `_` and `-` are the same. */
export const plainName = (name: string): string => {
  const known = plainNames.get(name);
  if (known !== undefined) return known;
  const plain = name.toLowerCase().replaceAll(/[\s_-]/g, "");
  if (plainNames.size >= maxPlainNames) plainNames.clear();
  if (name.length <= maxKnownLength) plainNames.set(name, plain);
  return plain;
};
/** The lines of a file have the same names. */
const plainNames = new Map<string, string>();
const maxPlainNames = 1_000;
const maxKnownLength = 100;

const shownLength = 40;

/** What a platform's name means; undefined without a name. A name that is not known is unsupported. */
export const platformNamed = (name: string | undefined): PlatformFields | UnsupportedPlatform | undefined => {
  if (name === undefined) return undefined;
  return platforms.get(plainName(name)) ?? unsupported(`the platform ${JSON.stringify(cutText(name, shownLength))}`);
};
