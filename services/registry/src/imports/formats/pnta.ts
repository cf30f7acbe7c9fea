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

/** `apns` and `fcm` where the platform is named by its provider. */
const platforms: Readonly<Record<string, Row>> = {
  ios: { platform: "ios" },
  apns: { platform: "ios" },
  android: { platform: "android" },
  fcm: { platform: "android" },
  web: { platform: "web" },
};

const nested = (value: unknown): Row => record(jsonIn(value));

/** PNTA: its devices as JSON or CSV. Its interface is the one that Herald's grew from, so most fields have the same names. */
export const pnta: MapRow = (row) => {
  const platform = platforms[text(row.platform)?.toLowerCase() ?? ""];
  if (platform === undefined) return undefined;
  const { topics, tags } = topicsAndTags(list(jsonIn(row.topics)));
  const metadata = nested(row.metadata);
  return device({
    ...platform,
    token: text(row.token) ?? text(row.identifier),
    keys: jsonIn(row.keys),
    environment: text(row.environment),
    user_id: text(row.user_id) ?? text(metadata.user_id),
    topics,
    metadata: compact({ ...safeKeys(metadata), tags }),
    identifiers: compact(safeKeys(nested(row.identifiers))),
    status: text(row.status) === "inactive" ? "inactive" : undefined,
    last_seen_at: time(row.last_seen_at ?? row.updated_at),
  });
};
