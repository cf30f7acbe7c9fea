import { isObject } from "@herald/contracts";
import { deviceOf, type FormatReader } from "./fields.ts";
import { ownFields } from "./own-data.ts";
import { listFrom, objectFrom } from "./values.ts";

/** Topics as a list, or as Google's Instance ID service lists those of a token: names with the day of each subscription. */
const topicsOf = (value: unknown): unknown[] | undefined => {
  const names = typeof value === "string" && value.trim().startsWith("{") ? objectFrom(value) : value;
  return isObject(names) ? Object.keys(names) : listFrom(names);
};

/**
 * Firebase Cloud Messaging: registration tokens, one a line, or as JSON objects or CSV rows with other fields. Firebase has no export, so each
 * app has its own names for the fields; those of the Instance ID service (`GET /iid/info/<token>?details=true`) are among them.
 */
export const firebase: FormatReader = {
  groups: ["rel"],
  object: (fields) => {
    const system = fields.platform("platform", "os", "device_type") ?? { platform: "android" };
    if ("unsupported" in system) return system;
    const isOut = fields.text("status")?.toLowerCase() === "inactive" || fields.boolean("enabled", "active") === false;
    return deviceOf(fields, {
      token: fields.text("token", "fcm_token", "registration_id", "registration_token"),
      platform: system.platform,
      provider: system.platform === "android" ? undefined : "fcm",
      app: fields.app("app", "bundle_id", "package_name", "application"),
      installation_id: fields.installationId("installation_id", "fid"),
      user_id: fields.text("user_id", "uid"),
      labels: fields.read(["topics", "rel.topics"], topicsOf),
      own: ownFields("metadata", fields.object("metadata")),
      identifiers: {
        current_locale: fields.locale("locale", "language"),
        app_version: fields.text("app_version", "application_version"),
        current_time_zone: fields.zone("time_zone"),
      },
      status: isOut ? "inactive" : undefined,
      last_seen_at: fields.time("last_seen_at", "timestamp", "updated_at"),
    });
  },
  line: (text) => (/^[A-Za-z0-9_:-]{20,}$/.test(text) ? { token: text } : undefined),
};
