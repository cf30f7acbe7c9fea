import { deviceOf, type FormatReader, readableIdentifiers } from "./fields.ts";
import { ownFields } from "./own-data.ts";

/** PNTA: its devices as JSON or CSV. Herald's API grew from PNTA's, so most fields have the same names. */
export const pnta: FormatReader = {
  object: (fields) => {
    const platform = fields.platform("platform");
    if (platform && "unsupported" in platform) return platform;
    return deviceOf(fields, {
      ...platform,
      token: fields.text("token", "identifier"),
      keys: fields.object("keys"),
      environment: fields.text("environment"),
      app: fields.app("app"),
      // Not `metadata.user_id`: anyone who knew a push token could write it at PNTA.
      user_id: fields.text("user_id"),
      labels: fields.list("topics"),
      own: ownFields("metadata", fields.object("metadata")),
      identifiers: readableIdentifiers(fields, fields.object("identifiers")),
      status: fields.text("status") === "inactive" ? "inactive" : undefined,
      last_seen_at: fields.time("last_seen_at", "updated_at"),
    });
  },
};
