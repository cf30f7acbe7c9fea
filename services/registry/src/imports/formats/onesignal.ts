import { definedFields, device, type ImportRow, jsonIn, type MapRow, textFrom, time } from "./fields.ts";

/** `device_type` of subscriptions that Herald can push to. Others are email, SMS, and discontinued services. */
const types: Readonly<Record<string, ImportRow>> = {
  "0": { platform: "ios" },
  "1": { platform: "android" },
  "5": { platform: "web" },
  "8": { platform: "web" },
  "17": { platform: "web" },
};

const base64url = (value: unknown): string | undefined =>
  textFrom(value)?.replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");

const yes = /^(t|true|1|yes)$/i;

/** OneSignal: its CSV export, with the optional fields `external_user_id`, `web_auth`, `web_p256` and `notification_types`. */
export const onesignal: MapRow = (row) => {
  const type = types[textFrom(row.device_type) ?? ""];
  if (type === undefined) return undefined;
  const isOut = yes.test(textFrom(row.invalid_identifier) ?? "") || Number(textFrom(row.notification_types) ?? 1) < 0;
  const keys = definedFields({ p256dh: base64url(row.web_p256), auth: base64url(row.web_auth) });
  return device({
    ...type,
    token: textFrom(row.identifier),
    keys: type.platform === "web" ? keys : undefined,
    user_id: textFrom(row.external_user_id),
    metadata: jsonIn(row.tags),
    identifiers: {
      current_locale: textFrom(row.language),
      app_version: textFrom(row.game_version),
      system_version: textFrom(row.device_os),
      model: textFrom(row.device_model),
      current_time_zone: textFrom(row.timezone_id),
      country: textFrom(row.country),
    },
    status: isOut ? "inactive" : undefined,
    last_seen_at: time(row.last_active),
  });
};
