import {
  compact,
  device,
  jsonIn,
  list,
  type MapRow,
  type Row,
  record,
  safeKeys,
  text,
  time,
  topicsAndTags,
} from "./fields.ts";

/** The first of several usual names of a field: Firebase has no export, so apps keep tokens under names of their own. */
const first = (row: Row, ...names: string[]): string | undefined => {
  for (const name of names) {
    const found = text(row[name]);
    if (found !== undefined) return found;
  }
  return undefined;
};

const platforms: Readonly<Record<string, string>> = {
  ios: "ios",
  iphone: "ios",
  apple: "ios",
  web: "web",
  browser: "web",
};

/** Firebase Cloud Messaging: registration tokens, one a line, or as JSON objects or CSV rows with what the app keeps beside them. */
export const firebase: MapRow = (row) => {
  const platform = platforms[(first(row, "platform", "os", "device_type") ?? "android").toLowerCase()] ?? "android";
  const { topics, tags } = topicsAndTags(
    Array.isArray(row.topics)
      ? row.topics
      : (list(jsonIn(row.topics)) as unknown[]).concat(
          text(row.topics)?.match(/^[[{]/) ? [] : (text(row.topics)?.split(/[\s,;|]+/) ?? []),
        ),
  );
  return device({
    token: first(row, "token", "fcm_token", "fcmToken", "registration_id", "registrationToken"),
    platform,
    provider: platform === "android" ? undefined : "fcm",
    installation_id: first(row, "installation_id", "installationId", "fid"),
    user_id: first(row, "user_id", "userId", "uid"),
    topics,
    metadata: compact({ ...safeKeys(record(jsonIn(row.metadata))), tags }),
    identifiers: compact({
      current_locale: first(row, "locale", "language"),
      app_version: first(row, "app_version", "appVersion"),
    }),
    last_seen_at: time(first(row, "last_seen_at", "timestamp", "updated_at", "updatedAt")),
  });
};
