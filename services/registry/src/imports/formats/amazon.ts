import { deviceOf, type Fields, type FormatReader } from "./fields.ts";
import type { OwnField } from "./own-data.ts";
import { ownFields } from "./own-data.ts";
import { type PlatformFields, plainName, platformNamed } from "./platform-names.ts";
import { objectFrom, textFrom } from "./values.ts";

/** Amazon's channels say which APNs environment a token belongs to. */
const channelNamed = (name: string | undefined) => {
  if (name === undefined) return undefined;
  const plain = plainName(name);
  if (plain === "apns") return { platform: "ios", environment: "production" } as const;
  if (plain === "apnssandbox") return { platform: "ios", environment: "sandbox" } as const;
  return platformNamed(name);
};

/** Attributes are lists. A list with one value becomes that value, so that targets find it. */
const attribute = ({ value, ...field }: OwnField): OwnField => ({
  ...field,
  value: Array.isArray(value) && value.length === 1 ? value[0] : value,
});

const metric = ({ value, ...field }: OwnField): OwnField => {
  const number = Number(textFrom(value) ?? Number.NaN);
  return { ...field, value: Number.isFinite(number) ? number : value };
};

/** Flutter and React Native apps of iOS have FCM tokens, which Pinpoint sends to as GCM. */
const withSystem = (channel: PlatformFields | undefined, fields: Fields): PlatformFields | undefined => {
  const system = fields.text("Demographic.Platform");
  if (channel?.platform !== "android" || system === undefined || plainName(system) !== "ios") return channel;
  return { platform: "ios", provider: "fcm" };
};

/**
 * Amazon Pinpoint: endpoints as an export job of a segment writes them, one JSON object a line; and its CSV, whose columns name nested fields
 * with dots, and repeat for further values of an attribute.
 */
export const pinpoint: FormatReader = {
  groups: ["user", "user.userattributes", "demographic", "location", "attributes", "metrics"],
  object: (fields) => {
    const channel = fields.read(["ChannelType"], (value) => channelNamed(textFrom(value)));
    if (channel && "unsupported" in channel) return channel;
    const isOut =
      fields.text("OptOut")?.toUpperCase() === "ALL" || fields.text("EndpointStatus")?.toUpperCase() === "INACTIVE";
    return deviceOf(fields, {
      ...withSystem(channel, fields),
      token: fields.text("Address"),
      app: fields.app("app"),
      user_id: fields.text("User.UserId"),
      identifiers: {
        current_locale: fields.locale("Demographic.Locale"),
        app_version: fields.text("Demographic.AppVersion"),
        system_version: fields.text("Demographic.PlatformVersion"),
        model: fields.text("Demographic.Model"),
        current_time_zone: fields.zone("Demographic.Timezone"),
        country: fields.text("Location.Country"),
      },
      own: [
        ...fields.under("Attributes").map(attribute),
        ...fields.under("User.UserAttributes").map(attribute),
        ...fields.under("Metrics").map(metric),
      ],
      status: isOut ? "inactive" : undefined,
      last_seen_at: fields.time("EffectiveDate"),
    });
  },
};

/** Amazon SNS: `list-endpoints-by-platform-application`, one JSON object a line, or a table with columns `Token` and `EndpointArn`. */
export const sns: FormatReader = {
  groups: ["attributes"],
  object: (fields) => {
    const channel = fields.read(["EndpointArn"], (arn) =>
      channelNamed(textFrom(arn)?.match(/:endpoint\/([A-Za-z_]+)\//)?.[1]),
    );
    if (channel && "unsupported" in channel) return channel;
    const inBoth = (name: string) => [`Attributes.${name}`, name];
    const data = fields.read(inBoth("CustomUserData"), (value) => value);
    const json = objectFrom(data);
    const field = "CustomUserData";
    return deviceOf(fields, {
      ...channel,
      token: fields.text(...inBoth("Token")),
      app: fields.app("app"),
      own: json ? ownFields(field, json) : [{ field, key: "custom_user_data", value: textFrom(data) }],
      status: fields.boolean(...inBoth("Enabled")) === false ? "inactive" : undefined,
    });
  },
};
