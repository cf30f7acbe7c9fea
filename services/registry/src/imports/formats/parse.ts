import { compact, device, list, type MapRow, record, safeKeys, text, time, topicsAndTags } from "./fields.ts";

/** What Parse stores of an installation by itself; every other field is the app's. */
const own = new Set([
  ...[
    "objectId",
    "_id",
    "createdAt",
    "updatedAt",
    "_created_at",
    "_updated_at",
    "_p_user",
    "user",
    "ACL",
    "_acl",
    "_rperm",
  ],
  ...[
    "_wperm",
    "deviceType",
    "deviceToken",
    "pushType",
    "GCMSenderId",
    "channels",
    "appVersion",
    "appName",
    "appIdentifier",
  ],
  ...[
    "appBuildNumber",
    "parseVersion",
    "localeIdentifier",
    "timeZone",
    "badge",
    "installationId",
    "deviceTokenLastModified",
  ],
]);

/** A time of its JSON export, or of mongoexport. */
const timeOf = (value: unknown): string | undefined => {
  const { iso, $date } = record(value);
  return time(iso ?? $date ?? value);
};

/** Parse Server: objects of `_Installation`, one a line, as the dashboard or mongoexport writes them. */
export const parse: MapRow = (row) => {
  const type = text(row.deviceType)?.toLowerCase();
  if (type !== "ios" && type !== "android") return undefined;
  const { topics, tags } = topicsAndTags(list(row.channels));
  const app = Object.fromEntries(Object.entries(row).filter(([name]) => !own.has(name)));
  return device({
    platform: type,
    token: text(row.deviceToken),
    installation_id: text(row.installationId),
    user_id: text(record(row.user).objectId) ?? text(row._p_user)?.replace(/^_User\$/, ""),
    topics,
    metadata: compact({ ...safeKeys(app), tags }),
    identifiers: compact({
      current_locale: text(row.localeIdentifier),
      app_version: text(row.appVersion),
      time_zone: text(row.timeZone),
      app: text(row.appIdentifier),
    }),
    last_seen_at: timeOf(row.updatedAt ?? row._updated_at),
  });
};
