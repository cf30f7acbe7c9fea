import { device, type MapRow, record, textFrom, time } from "./fields.ts";

/** Fields of an installation that Parse defines; all other fields are the app's. */
const own = new Set(
  [
    "objectId _id createdAt updatedAt _created_at _updated_at _p_user user ACL _acl _rperm _wperm deviceType",
    "deviceToken pushType GCMSenderId channels appVersion appName appIdentifier appBuildNumber parseVersion",
    "localeIdentifier timeZone badge installationId deviceTokenLastModified",
  ].flatMap((names) => names.split(" ")),
);

/** A time in Parse's JSON export or in the output of mongoexport. */
const timeOf = (value: unknown): string | undefined => {
  const { iso, $date } = record(value);
  return time(iso ?? $date ?? value);
};

/** Parse Server: objects of `_Installation`, one a line, as the dashboard or mongoexport writes them. */
export const parse: MapRow = (row) => {
  const type = textFrom(row.deviceType)?.toLowerCase();
  if (type !== "ios" && type !== "android") return undefined;
  return device({
    platform: type,
    token: textFrom(row.deviceToken),
    installation_id: textFrom(row.installationId),
    user_id: textFrom(record(row.user).objectId) ?? textFrom(row._p_user)?.replace(/^_User\$/, ""),
    labels: row.channels,
    metadata: Object.fromEntries(Object.entries(row).filter(([name]) => !own.has(name))),
    identifiers: {
      current_locale: textFrom(row.localeIdentifier),
      app_version: textFrom(row.appVersion),
      current_time_zone: textFrom(row.timeZone),
      app: textFrom(row.appIdentifier),
    },
    last_seen_at: timeOf(row.updatedAt ?? row._updated_at),
  });
};
