import { isObject } from "@herald/contracts";
import { deviceOf, type Fields, type FormatReader } from "./fields.ts";
import { objectFrom, textFrom } from "./values.ts";

/** Fields of an installation that Parse defines and devices do not have. All other fields are the app's. */
const ofParse = new Set(
  [
    "objectId _id createdAt _created_at ACL _acl _rperm _wperm pushType GCMSenderId appName appBuildNumber parseVersion badge",
    "deviceTokenLastModified",
  ].flatMap((names) => names.split(" ")),
);

/** A pointer to a user, as an object or as MongoDB stores it. */
const userOf = (value: unknown): string | undefined =>
  isObject(value) ? textFrom(value.objectId) : textFrom(value)?.replace(/^_User\$/, "");

/** The token; in browsers, the whole subscription is the token. */
const tokenOf = (fields: Fields, isWeb: boolean) => {
  const found = fields.read(["deviceToken"], (value) => (isWeb && objectFrom(value)) || textFrom(value));
  return isObject(found) ? { token: textFrom(found.endpoint), keys: found.keys } : { token: found };
};

/** Parse Server: objects of `_Installation`, one a line, as the dashboard or mongoexport writes them. */
export const parse: FormatReader = {
  object: (fields) => {
    const type = fields.platform("deviceType");
    if (type && "unsupported" in type) return type;
    const known = {
      ...type,
      ...tokenOf(fields, type?.platform === "web"),
      app: fields.app("appIdentifier"),
      installation_id: fields.installationId("installationId"),
      user_id: fields.read(["user", "user.objectId", "_p_user"], userOf),
      labels: fields.list("channels"),
      identifiers: {
        current_locale: fields.locale("localeIdentifier"),
        app_version: fields.text("appVersion"),
        current_time_zone: fields.zone("timeZone"),
      },
      last_seen_at: fields.time("updatedAt", "_updated_at"),
    };
    return deviceOf(fields, { ...known, own: fields.rest((name) => ofParse.has(name)) });
  },
};
