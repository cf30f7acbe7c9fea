import { compact, device, list, type MapRow, type Row, record, safeKeys, text, time } from "./fields.ts";

/** Endpoints of other channels are email addresses, phone numbers and services that Herald does not push to. */
const channels: Readonly<Record<string, Row>> = {
  APNS: { platform: "ios", environment: "production" },
  APNS_SANDBOX: { platform: "ios", environment: "sandbox" },
  GCM: { platform: "android" },
  FCM: { platform: "android" },
};

/** Attributes are lists; a single value stands alone, so that targets find it. */
const attributes = (given: unknown): Record<string, unknown> =>
  safeKeys(
    Object.fromEntries(
      Object.entries(record(given)).map(([name, value]) => {
        const values = list(value);
        return [name, values.length === 1 ? values[0] : value];
      }),
    ),
  );

/** Amazon Pinpoint: endpoints as an export job of a segment writes them, one JSON object a line. */
export const pinpoint: MapRow = (row) => {
  const channel = channels[text(row.ChannelType)?.toUpperCase() ?? ""];
  if (channel === undefined) return undefined;
  const demographic = record(row.Demographic);
  const user = record(row.User);
  const isOut = text(row.OptOut) === "ALL" || text(row.EndpointStatus) === "INACTIVE";
  return device({
    ...channel,
    token: text(row.Address),
    user_id: text(user.UserId),
    metadata: compact({
      ...attributes(row.Attributes),
      ...attributes(user.UserAttributes),
      ...safeKeys(record(row.Metrics)),
    }),
    identifiers: compact({
      current_locale: text(demographic.Locale)?.replace("_", "-"),
      app_version: text(demographic.AppVersion),
      system_version: text(demographic.PlatformVersion),
      model: text(demographic.Model),
      time_zone: text(demographic.Timezone),
      country: text(record(row.Location).Country),
    }),
    status: isOut ? "inactive" : undefined,
    last_seen_at: time(row.EffectiveDate),
  });
};
