import { z } from "zod";

const sendTypes = ["voip", "complication", "widgets", "controls", "location", "fileprovider", "pushtotalk"] as const;

/** Apple's push types beside alerts and background pushes. An app has a token of its own for each. */
export const PushType = z.enum([...sendTypes, "liveactivity"]).meta({ id: "PushType" });
export type PushType = z.infer<typeof PushType>;

/** The push types of a send. Pushes of Live Activities are sent by the routes of activities. */
export const SendPushType = z.enum(sendTypes).meta({ id: "SendPushType" });
export type SendPushType = z.infer<typeof SendPushType>;

/** What a further token is for: a push type, or one activity. `liveactivity` has the tokens that start activities. */
export const TokenType = z.enum([...PushType.options, "activity"]).meta({ id: "TokenType" });
export type TokenType = z.infer<typeof TokenType>;

/** The kind of a control, the attributes type of a Live Activity, or the id of one: each has a token of its own. */
export const PushName = z
  .string()
  .regex(/^(?!\.{1,2}$)[A-Za-z0-9._-]{1,64}$/, "must be 1 to 64 letters, digits and `.`, `_`, `-`")
  .meta({ id: "PushName", examples: ["garage-door"] });
export type PushName = z.infer<typeof PushName>;

/** A push type, and for controls their kind: `voip`, `controls/garage-door`. */
export const PushKey = z.string().regex(/^[a-z]+(\/[A-Za-z0-9._-]{1,64})?$/);
export type PushKey = z.infer<typeof PushKey>;

type Named = {
  readonly push_type?: PushType | undefined;
  readonly push_name?: PushName | undefined;
  readonly activity?: ActivityReference | undefined;
};
type ActivityReference = { readonly id: string; readonly event: string; readonly attributes_type?: string | undefined };

const keyOf = (type: TokenType, name: string | undefined): PushKey => (name === undefined ? type : `${type}/${name}`);

/** The key of an activity's update tokens. */
export const activityPushKey = (id: string): PushKey => keyOf("activity", id);
export const isActivityPushKey = (key: PushKey): boolean => key.startsWith("activity/");

/** The key of the token that a push goes to; undefined: the device token. */
export const pushKeyOf = ({ push_type: type, push_name: name, activity }: Named): PushKey | undefined => {
  if (activity === undefined) return type && keyOf(type, name);
  return activity.event === "start" ? keyOf("liveactivity", activity.attributes_type) : activityPushKey(activity.id);
};

/** The key of a token, as an app names it. */
export const furtherTokenKey = keyOf;

/** The inverse of {@link furtherTokenKey}. */
export const fromPushKey = (key: PushKey): { readonly type: TokenType; readonly name?: PushName } => {
  const [type = "", name] = key.split("/");
  return { type: type as TokenType, ...(name !== undefined && { name }) };
};

const names: Partial<Record<TokenType, string>> = {
  controls: "the kind of the control",
  liveactivity: "the type of the attributes",
  activity: "the id of the activity",
};

/** Some types of tokens have names. Undefined: the name fits. */
export const pushNameProblem = (type: TokenType | undefined, name: string | undefined): string | undefined => {
  const wanted = type && names[type];
  if (wanted !== undefined && name === undefined) return `is required for ${type}: ${wanted}`;
  return wanted === undefined && name !== undefined ? "is only for controls" : undefined;
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
  liveactivity: ".push-type.liveactivity",
};

/** A call or a voice message that arrives late only confuses, so these are sent now or never unless `ttl` says otherwise. */
export const isNowOrNever = (type: PushType | undefined): boolean => type === "voip" || type === "pushtotalk";

/** The maximum of a device's further tokens. */
export const maxFurtherTokens = 32;
