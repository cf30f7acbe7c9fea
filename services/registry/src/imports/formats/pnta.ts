import { device, jsonIn, type MapRow, platformNamed, record, text, time } from "./fields.ts";

/** PNTA: its devices as JSON or CSV. Herald's API grew from PNTA's, so most fields have the same names. */
export const pnta: MapRow = (row) => {
  const platform = platformNamed(text(row.platform)?.toLowerCase());
  if (platform === undefined) return undefined;
  const metadata = record(jsonIn(row.metadata));
  return device({
    ...platform,
    token: text(row.token) ?? text(row.identifier),
    keys: jsonIn(row.keys),
    environment: text(row.environment),
    user_id: text(row.user_id) ?? text(metadata.user_id),
    labels: jsonIn(row.topics),
    metadata,
    identifiers: jsonIn(row.identifiers),
    status: text(row.status) === "inactive" ? "inactive" : undefined,
    last_seen_at: time(row.last_seen_at ?? row.updated_at),
  });
};
