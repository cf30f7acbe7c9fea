import { arrayFrom, device, jsonIn, type MapRow, platformNamed, record, textFrom, time } from "./fields.ts";

/** Attributes are lists. A list with one value becomes that value, so that targets find it. */
const attributes = (given: unknown): Record<string, unknown> =>
  Object.fromEntries(
    Object.entries(record(given)).map(([name, value]) => {
      const values = arrayFrom(value);
      return [name, values.length === 1 ? values[0] : value];
    }),
  );

/** Amazon Pinpoint: endpoints as an export job of a segment writes them, one JSON object a line. */
export const pinpoint: MapRow = (row) => {
  const channel = platformNamed(textFrom(row.ChannelType)?.toUpperCase());
  if (channel === undefined) return undefined;
  const demographic = record(row.Demographic);
  const user = record(row.User);
  const isOut = textFrom(row.OptOut) === "ALL" || textFrom(row.EndpointStatus) === "INACTIVE";
  return device({
    ...channel,
    token: textFrom(row.Address),
    user_id: textFrom(user.UserId),
    metadata: { ...attributes(row.Attributes), ...attributes(user.UserAttributes), ...record(row.Metrics) },
    identifiers: {
      current_locale: textFrom(demographic.Locale),
      app_version: textFrom(demographic.AppVersion),
      system_version: textFrom(demographic.PlatformVersion),
      model: textFrom(demographic.Model),
      current_time_zone: textFrom(demographic.Timezone),
      country: textFrom(record(row.Location).Country),
    },
    status: isOut ? "inactive" : undefined,
    last_seen_at: time(row.EffectiveDate),
  });
};

/** Amazon SNS: `list-endpoints-by-platform-application`, one JSON object a line, or a table with columns `Token` and `EndpointArn`. */
export const sns: MapRow = (row) => {
  const arn = textFrom(row.EndpointArn);
  const platform = platformNamed(arn?.match(/:endpoint\/([A-Z_]+)\//)?.[1]);
  if (platform === undefined) return undefined;
  const attributes = { ...row, ...record(row.Attributes) };
  const data = attributes.CustomUserData;
  const json = record(jsonIn(data));
  return device({
    ...platform,
    token: textFrom(attributes.Token),
    metadata: Object.keys(json).length > 0 ? json : { custom_user_data: textFrom(data) },
    status: textFrom(attributes.Enabled)?.toLowerCase() === "false" ? "inactive" : undefined,
  });
};
