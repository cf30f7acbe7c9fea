import { device, jsonIn, type MapRow, platformNamed, record, textFrom, time } from "./fields.ts";

/** PNTA: its devices as JSON or CSV. Herald's API grew from PNTA's, so most fields have the same names. */
export const pnta: MapRow = (row) => {
  const platform = platformNamed(textFrom(row.platform)?.toLowerCase());
  if (platform === undefined) return undefined;
  const metadata = record(jsonIn(row.metadata));
  return device({
    ...platform,
    token: textFrom(row.token) ?? textFrom(row.identifier),
    keys: jsonIn(row.keys),
    environment: textFrom(row.environment),
    // Not `metadata.user_id`: anyone who knew a push token could write it at PNTA.
    user_id: textFrom(row.user_id),
    labels: jsonIn(row.topics),
    metadata,
    identifiers: jsonIn(row.identifiers),
    status: textFrom(row.status) === "inactive" ? "inactive" : undefined,
    last_seen_at: time(row.last_seen_at ?? row.updated_at),
  });
};
