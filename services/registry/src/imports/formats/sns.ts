import { compact, device, jsonIn, type MapRow, type Row, record, safeKeys, text } from "./fields.ts";

const platforms: Readonly<Record<string, Row>> = {
  APNS: { platform: "ios", environment: "production" },
  APNS_SANDBOX: { platform: "ios", environment: "sandbox" },
  GCM: { platform: "android" },
};

/** Amazon SNS: endpoints of `list-endpoints-by-platform-application`, one JSON object a line, or a table with the columns `Token` and `EndpointArn`. */
export const sns: MapRow = (row) => {
  const arn = text(row.EndpointArn);
  const platform = platforms[arn?.match(/:endpoint\/([A-Z_]+)\//)?.[1] ?? ""];
  if (platform === undefined) return undefined;
  const attributes = { ...row, ...record(row.Attributes) };
  const data = attributes.CustomUserData;
  const json = jsonIn(data);
  const isObject = Object.keys(record(json)).length > 0;
  return device({
    ...platform,
    token: text(attributes.Token),
    metadata: isObject ? safeKeys(record(json)) : compact({ custom_user_data: text(data) }),
    status: text(attributes.Enabled)?.toLowerCase() === "false" ? "inactive" : undefined,
  });
};
