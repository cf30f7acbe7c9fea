import { lineLimits } from "@herald/contracts";
import { HeraldError } from "@herald/kit";
import { deviceOf, type FormatReader, type ImportRow } from "./fields.ts";
import { platformNamed } from "./platform-names.ts";
import { definedFields, textFrom } from "./values.ts";

const entities: Readonly<Record<string, string>> = { amp: "&", lt: "<", gt: ">", quot: '"', apos: "'" };

const decoded = (value: string): string =>
  value
    .replaceAll(/&(?:#(\d{1,7})|#x([0-9a-fA-F]{1,6})|(amp|lt|gt|quot|apos));/g, (whole, decimal, hex, name) => {
      if (name !== undefined) return entities[name] ?? whole;
      const code = decimal === undefined ? Number.parseInt(hex, 16) : Number(decimal);
      return code <= 0x10ffff ? String.fromCodePoint(code) : whole;
    })
    .toWellFormed();

/**
 * The fields of a registration as the export writes it: one flat XML element a line. Undefined for other lines.
 * @throws HeraldError `validation-failed` for too many elements.
 */
export const registrationOf = (line: string): ImportRow | undefined => {
  const kind = line.match(/<([A-Za-z0-9]+RegistrationDescription)[\s>]/)?.[1];
  if (kind === undefined) return undefined;
  const row: Record<string, unknown> = { kind };
  let elements = 0;
  for (const [, name, value] of line.matchAll(/<([A-Za-z0-9]+)>([^<]*)<\/\1>/g)) {
    if (++elements > lineLimits.columns)
      throw new HeraldError("validation-failed", `line: has more than ${lineLimits.columns} elements`);
    row[name ?? ""] = decoded(value ?? "");
  }
  return row;
};

/** Azure adds tags that begin with `$`. In the export of registrations they name the installation and its user: `$UserId:{u_8412}`. */
const azureTag = (tags: readonly string[], name: string): string | undefined => {
  const start = `$${name}:{`;
  return tags.find((tag) => tag.startsWith(start) && tag.endsWith("}"))?.slice(start.length, -1);
};

/** Azure Notification Hubs: registrations as XML or JSON, or installations as JSON, one a line. */
export const azureNh: FormatReader = {
  groups: ["pushchannel"],
  line: registrationOf,
  object: (fields) => {
    const platform = fields.read(["kind", "platform"], (value) =>
      platformNamed(textFrom(value)?.replace(/(Template)?(RegistrationDescription)?$/, "")),
    );
    if (platform && "unsupported" in platform) return platform;
    const isWeb = platform?.platform === "web";
    const given = fields.read(["tags"], (value) => (Array.isArray(value) ? value : textFrom(value)?.split(",")));
    const tags = (given ?? []).flatMap((tag) => textFrom(tag) ?? []);
    const keys = isWeb && {
      p256dh: fields.text("pushChannel.p256dh", "p256dh"),
      auth: fields.text("pushChannel.auth", "auth"),
    };
    return deviceOf(fields, {
      ...platform,
      token: isWeb
        ? fields.text("pushChannel.endpoint", "endpoint")
        : fields.text("pushChannel", "DeviceToken", "FcmV1RegistrationId", "GcmRegistrationId"),
      keys: keys ? definedFields(keys) : undefined,
      app: fields.app("app"),
      installation_id: fields.installationId("installationId") ?? azureTag(tags, "InstallationId"),
      user_id: fields.text("userId") ?? azureTag(tags, "UserId"),
      labels: tags.filter((tag) => !tag.startsWith("$")),
      status: fields.boolean("pushChannelExpired") === true ? "inactive" : undefined,
      last_seen_at: fields.time("lastUpdate"),
    });
  },
};
