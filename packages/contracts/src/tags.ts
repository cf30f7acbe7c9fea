import { z } from "zod";
import { ActivityReference } from "./activity-push.ts";
import { PushType } from "./push-types.ts";

/** The limits of a notification's labels. Each value gets its own statistics. */
const labelLimits = { labels: 8, nameLength: 32, valueLength: 64 } as const;

const LabelName = z
  .string()
  .regex(/^[a-z0-9_]{1,32}$/, `must be 1 to ${labelLimits.nameLength} of \`a-z\`, \`0-9\` and \`_\``);

/** Without control characters and unpaired surrogates, which databases do not return unchanged, and U+FFFD, which stands for them. */
const LabelValue = z
  .string()
  .min(1, "may not be empty")
  .max(labelLimits.valueLength, `must be at most ${labelLimits.valueLength} characters`)
  .refine((value) => !/[\p{Cc}\p{Cs}\ufffd]/u.test(value), "may not contain control characters or half characters");

export const Labels = z
  .record(LabelName, LabelValue, { error: "must be a JSON object" })
  .refine(
    (labels) => Object.keys(labels).length <= labelLimits.labels,
    `at most ${labelLimits.labels} labels are accepted`,
  )
  .meta({
    maxProperties: labelLimits.labels,
    description:
      "What you call it in lists and statistics: at most 8 values by name. Devices do not get them; events, webhooks and statistics do. Use values that repeat, such as a campaign: a label has statistics of its first 1,000 values a month",
    examples: [{ campaign: "spring", team: "growth" }],
  });

/** A kind needs no declaration: every valid slug is accepted. */
export const Kind = z
  .string()
  .regex(/^[a-z0-9][a-z0-9_-]{0,63}$/, "must be a slug: 1 to 64 of `a-z`, `0-9`, `_` and `-`, such as `order-shipped`")
  .meta({
    description:
      "What sort of message it is, as a slug. Devices do not get it; lists, events, webhooks and statistics are by kind",
    examples: ["order-shipped"],
  });

/** The kind, the labels and the push type of a notification, in requests and in events. */
export const tagFields = {
  kind: Kind.optional(),
  labels: Labels.optional(),
  push_type: PushType.optional().meta({
    description:
      "Apple's push type. Absent: an alert or a background push. It goes to iPhones that have a token of this type; `data` and `ios` are its payload, and no field that shows something is accepted beside it. `voip` may have 5,120 bytes; `voip` and `pushtotalk` have a `ttl` of 0 unless you set one. `liveactivity`: of an activity",
    examples: ["voip"],
  }),
};
/** The same in events, which name the activity. */
export const eventTagFields = {
  ...tagFields,
  activity: ActivityReference.optional().meta({ description: "The Live Activity that it is about; absent: none" }),
};
const labelProblem = "must be <name>:<value> of a label, such as campaign:spring";
/** Name and value of a {@link LabelFilter}; both empty if it is not one. */
export const splitLabel = (label: string): [name: string, value: string] => {
  const split = label.indexOf(":");
  return split < 0 ? ["", ""] : [label.slice(0, split), label.slice(split + 1)];
};

/** A label in a query: `<name>:<value>`. */
export const LabelFilter = z
  .string()
  .refine((label) => {
    const [name, value] = splitLabel(label);
    return LabelName.safeParse(name).success && LabelValue.safeParse(value).success;
  }, labelProblem)
  .meta({ pattern: "^[a-z0-9_]{1,32}:.{1,64}$", examples: ["campaign:spring"] });

/** A kind, a push type or a label as one string, such as `kind/<kind>` or `label/<name>/<value>`. Databases index and group by it. */
export type Tag = `kind/${string}` | `push_type/${string}` | `label/${string}/${string}` | ActivityTag;
/** `activity/<id>/<event>/<version>`: for events, not for statistics. */
type ActivityTag = `activity/${string}`;
