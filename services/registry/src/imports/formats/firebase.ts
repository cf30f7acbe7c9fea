import { device, type ImportRow, jsonIn, type MapRow, platformNamed, textFrom, time } from "./fields.ts";

/** The first value found under one of these names. Firebase has no export, so each app has its own names for the fields. */
const first = (row: ImportRow, ...names: string[]): string | undefined => {
  for (const name of names) {
    const found = textFrom(row[name]);
    if (found !== undefined) return found;
  }
  return undefined;
};

/** Firebase Cloud Messaging: registration tokens, one a line, or as JSON objects or CSV rows with the app's other fields. */
export const firebase: MapRow = (row) => {
  const { platform } = platformNamed(first(row, "platform", "os", "device_type")?.toLowerCase()) ?? {
    platform: "android",
  };
  const isJson = /^[[{]/.test(textFrom(row.topics) ?? "");
  return device({
    token: first(row, "token", "fcm_token", "fcmToken", "registration_id", "registrationToken"),
    platform,
    provider: platform === "android" ? undefined : "fcm",
    installation_id: first(row, "installation_id", "installationId", "fid"),
    user_id: first(row, "user_id", "userId", "uid"),
    labels: Array.isArray(row.topics) || isJson ? jsonIn(row.topics) : textFrom(row.topics)?.split(/[\s,;|]+/),
    metadata: jsonIn(row.metadata),
    identifiers: {
      current_locale: first(row, "locale", "language"),
      app_version: first(row, "app_version", "appVersion"),
    },
    last_seen_at: time(first(row, "last_seen_at", "timestamp", "updated_at", "updatedAt")),
  });
};
