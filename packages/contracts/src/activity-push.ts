import { z } from "zod";
import { named } from "./named.ts";
import { isObject } from "./plain-batch.ts";

/** The id that the caller gives a Live Activity. `__proto__` would be a trap for programs that use it as a key. */
export const ActivityId = z
  .string()
  .regex(/^(?!__proto__$)[A-Za-z0-9_-]{1,64}$/, "must be 1 to 64 letters, digits, `_` and `-`")
  .meta({ id: "ActivityId", examples: ["order-4711"] });
export type ActivityId = z.infer<typeof ActivityId>;

export type JsonObject = Readonly<Record<string, unknown>>;

/** Not recursive: a body may nest twenty thousand values. */
const hasProto = (root: unknown): boolean => {
  const left = [root];
  for (let value = left.pop(); left.length > 0 || value !== undefined; value = left.pop()) {
    if (typeof value !== "object" || value === null) continue;
    if (Object.hasOwn(value, "__proto__")) return true;
    for (const part of Object.values(value)) if (typeof part === "object" && part !== null) left.push(part);
  }
  return false;
};

/** State and attributes pass unchanged: the app decodes them. A check of its own, because a record would drop some keys. */
const jsonObject = (description: string, example: JsonObject) =>
  z
    .custom<JsonObject>(
      (value) => isObject(value) && !hasProto(value),
      "must be a JSON object without a key `__proto__`",
    )
    .meta({ type: "object", additionalProperties: true, description, examples: [example] });

export const ContentState = jsonObject(
  "The `ContentState` of the app's attributes, as the app decodes it. A Swift `Date` in it counts seconds from 2001, unless the app decodes a type of its own",
  { status: "on its way", minutes: 12 },
);
export const ActivityAttributes = jsonObject(
  "The `ActivityAttributes` of the app, which do not change. Herald adds `herald`, by which the app reports an open",
  { order: "4711" },
);

export const ActivityAlert = z
  .strictObject({
    title: z.string().min(1, "may not be empty").max(256, "must be at most 256 characters"),
    body: z.string().min(1, "may not be empty").max(1_000, "must be at most 1000 characters"),
    sound: z.string().min(1).max(256).optional().meta({ description: "The name of a sound in the app" }),
  })
  .meta({ id: "ActivityAlert", examples: [{ title: "Your order", body: "It is on its way." }] });
export type ActivityAlert = z.infer<typeof ActivityAlert>;

/** `join`: the current state, for a device whose token came late or changed. */
export const ActivityEvent = z.enum(["start", "update", "end", "join"]).meta({ id: "ActivityEvent" });
export type ActivityEvent = z.infer<typeof ActivityEvent>;

const reference = {
  id: ActivityId,
  version: z.number().int().min(1).optional().meta({ description: "Absent: of the end at `ends_at`" }),
  event: ActivityEvent,
};
/** An activity in events. */
export const ActivityReference = named("ActivityReference", reference, {
  examples: [{ id: "order-4711", version: 3, event: "update" }],
});
export type ActivityReference = z.infer<typeof ActivityReference>;

/** What a push says of an activity. Dispatch replaces the state by the newest where the push may take it. */
export const ActivityPush = named("ActivityPush", {
  ...reference,
  attributes_type: z.string().optional(),
  attributes: ActivityAttributes.optional(),
  content_state: ContentState,
  timestamp: z.number().int().meta({ description: "Seconds since 1970. iOS ignores a state older than the shown one" }),
  alert: ActivityAlert.optional(),
  stale_at: z.iso.datetime().optional(),
  dismiss_at: z.iso.datetime().optional(),
  relevance: z.number().optional(),
  ended: z.literal(true).optional().meta({ description: "Of a join: the activity has ended" }),
});
export type ActivityPush = z.infer<typeof ActivityPush>;
