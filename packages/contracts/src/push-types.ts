import { z } from "zod";

/** Apple's push types beside alerts and background pushes. An app has a token of its own for each. */
export const PushType = z
  .enum(["voip", "complication", "widgets", "controls", "location", "fileprovider", "pushtotalk"])
  .meta({ id: "PushType" });
export type PushType = z.infer<typeof PushType>;

/** The kind of a control: each control that a user places has a token of its own. */
export const PushName = z
  .string()
  .regex(/^(?!\.{1,2}$)[A-Za-z0-9._-]{1,64}$/, "must be 1 to 64 letters, digits and `.`, `_`, `-`")
  .meta({ id: "PushName", examples: ["garage-door"] });
export type PushName = z.infer<typeof PushName>;

/** A push type, and for controls their kind: `voip`, `controls/garage-door`. */
export const PushKey = z.string().regex(/^[a-z]+(\/[A-Za-z0-9._-]{1,64})?$/);
export type PushKey = z.infer<typeof PushKey>;

type Named = { readonly push_type?: PushType | undefined; readonly push_name?: PushName | undefined };

/** The key of the token that a push goes to; undefined: the device token. */
export const pushKeyOf = ({ push_type: type, push_name: name }: Named): PushKey | undefined =>
  name === undefined ? type : `${type}/${name}`;

/** The inverse of {@link pushKeyOf}. */
export const fromPushKey = (key: PushKey): { readonly type: PushType; readonly name?: PushName } => {
  const [type = "", name] = key.split("/");
  return { type: type as PushType, ...(name !== undefined && { name }) };
};

/** Only controls have names. Undefined: the names fit. */
export const pushNameProblem = ({ push_type: type, push_name: name }: Named): string | undefined => {
  if (type === "controls" && name === undefined) return "is required for controls: the kind of the control";
  return type !== "controls" && name !== undefined ? "is only for controls" : undefined;
};

/** The end of a push type's topic, after the bundle id ("Sending notification requests to APNs"). */
export const topicEndings: Readonly<Record<PushType, string>> = {
  voip: ".voip",
  complication: ".complication",
  widgets: ".push-type.widgets",
  controls: ".push-type.controls",
  location: ".location-query",
  fileprovider: ".pushkit.fileprovider",
  pushtotalk: ".voip-ptt",
};

/** A call or a voice message that arrives late only confuses, so these are sent now or never unless `ttl` says otherwise. */
export const isNowOrNever = (type: PushType | undefined): boolean => type === "voip" || type === "pushtotalk";

/** The maximum of a device's further tokens. */
export const maxFurtherTokens = 32;
