import { importLimits } from "@herald/contracts";
import { HeraldError } from "@herald/kit";
import { arrayFrom, definedFields, device, type ImportRow, type MapRow, platformNamed, textFrom } from "./fields.ts";

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
    if (++elements > importLimits.columns)
      throw new HeraldError("validation-failed", `line: has more than ${importLimits.columns} elements`);
    row[name ?? ""] = decoded(value ?? "");
  }
  return row;
};

/** Azure Notification Hubs: registrations as XML, or installations as JSON, one a line. */
export const azureNh: MapRow = (row) => {
  const kind = textFrom(row.kind)?.replace(/(Template)?RegistrationDescription$/, "") ?? textFrom(row.platform) ?? "";
  const platform = platformNamed(kind.toLowerCase());
  if (platform === undefined) return undefined;
  const given = arrayFrom(row.tags).length > 0 ? arrayFrom(row.tags) : (textFrom(row.Tags)?.split(",") ?? []);
  const channel = row.pushChannel;
  const web = typeof channel === "object" && channel !== null ? (channel as ImportRow) : row;
  const isWeb = platform.platform === "web";
  return device({
    ...platform,
    token: isWeb
      ? (textFrom(web.endpoint) ?? textFrom(web.Endpoint))
      : (textFrom(channel) ??
        textFrom(row.DeviceToken) ??
        textFrom(row.FcmV1RegistrationId) ??
        textFrom(row.GcmRegistrationId)),
    keys: isWeb
      ? definedFields({
          p256dh: textFrom(web.p256dh) ?? textFrom(web.P256DH),
          auth: textFrom(web.auth) ?? textFrom(web.Auth),
        })
      : undefined,
    user_id: textFrom(row.userId) || undefined,
    // Azure adds tags that begin with `$`.
    labels: given.filter((tag) => !textFrom(tag)?.startsWith("$")),
  });
};
