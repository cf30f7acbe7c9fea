import { deviceOf, type Fields, type FormatReader } from "./fields.ts";
import { ownFields } from "./own-data.ts";
import { oldSafari, type PlatformFields, platformNamed, type UnsupportedPlatform } from "./platform-names.ts";
import { definedFields, textFrom } from "./values.ts";

/** `device_type` of a subscription as a number, and the name that newer interfaces have for it. 7 is Safari, before Web Push and since. */
const types: Readonly<Record<string, string>> = {
  "0": "iOSPush",
  "1": "AndroidPush",
  "2": "FireOSPush",
  "3": "mpns",
  "4": "ChromeExtension",
  "5": "ChromePush",
  "6": "WindowPush",
  "7": "SafariPush",
  "8": "FirefoxPush",
  "9": "macOSPush",
  "10": "AlexaPush",
  "11": "Email",
  "12": "FirefoxPush",
  "13": "HuaweiPush",
  "14": "SMS",
  "17": "SafariPush",
};

const typeOf = (fields: Fields, token: string | undefined): PlatformFields | UnsupportedPlatform | undefined => {
  const type = fields.read(["device_type", "type"], (value) => {
    const text = textFrom(value);
    return platformNamed(types[String(Number(text))] ?? text);
  });
  const isWeb = type !== undefined && "platform" in type && type.platform === "web";
  return isWeb && token !== undefined && !token.includes("://") ? oldSafari : type;
};

/** A development build; OneSignal leaves it out for the App Store, and writes 2 for ad hoc builds. */
const developmentBuild = "1";

/**
 * OneSignal: its CSV export, with the optional fields `external_user_id`, `timezone_id`, `notification_types`, `country`, `web_auth` and
 * `web_p256`.
 */
export const onesignal: FormatReader = {
  object: (fields) => {
    const token = fields.text("identifier", "token");
    const type = typeOf(fields, token);
    if (type && "unsupported" in type) return type;
    const subscribed = Number(fields.text("notification_types") ?? 1);
    const isOut =
      fields.boolean("invalid_identifier") === true || fields.boolean("enabled") === false || subscribed <= 0;
    const isSandbox = type?.platform === "ios" && fields.text("test_type") === developmentBuild;
    const keys = { p256dh: fields.text("web_p256"), auth: fields.text("web_auth") };
    return deviceOf(fields, {
      ...type,
      environment: isSandbox ? "sandbox" : undefined,
      token,
      keys: type?.platform === "web" ? definedFields(keys) : undefined,
      app: fields.app("app"),
      user_id: fields.text("external_user_id", "external_id"),
      own: ownFields("tags", fields.object("tags")),
      identifiers: {
        current_locale: fields.locale("language"),
        app_version: fields.text("game_version", "app_version"),
        system_version: fields.text("device_os"),
        model: fields.text("device_model"),
        current_time_zone: fields.zone("timezone_id"),
        country: fields.text("country"),
      },
      status: isOut ? "inactive" : undefined,
      last_seen_at: fields.time("last_active"),
    });
  },
};
