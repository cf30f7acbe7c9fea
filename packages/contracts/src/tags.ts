import { z } from "zod";

/** The limits of a notification's labels. Each value gets its own statistics. */
const labelLimits = { labels: 8, nameLength: 32, valueLength: 64 } as const;

const LabelName = z
  .string()
  .regex(/^[a-z0-9_]{1,32}$/, `must be 1 to ${labelLimits.nameLength} of \`a-z\`, \`0-9\` and \`_\``);

/** Without control characters and unpaired surrogates, which databases do not return unchanged. */
const LabelValue = z
  .string()
  .min(1, "may not be empty")
  .max(labelLimits.valueLength, `must be at most ${labelLimits.valueLength} characters`)
  .refine((value) => !/[\p{Cc}\p{Cs}]/u.test(value), "may not contain control characters or half characters");

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

/** The kind and the labels of a notification, in requests and in events. */
export const tagFields = { kind: Kind.optional(), labels: Labels.optional() };
type TagFields = { readonly kind?: string | undefined; readonly labels?: Readonly<Record<string, string>> | undefined };

const labelProblem = "must be <name>:<value> of a label, such as campaign:spring";
const splitLabel = (label: string): [name: string, value: string] => {
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

const kindPrefix = "kind/";
const labelPrefix = "label/";

/** A kind or a label as one string: `kind/<kind>` or `label/<name>/<value>`. Databases index and group by it. */
export type Tag = `kind/${string}` | `label/${string}/${string}`;

export const kindTag = (kind: string): Tag => `${kindPrefix}${kind}` as Tag;
const labelTag = (name: string, value: string): Tag => `${labelPrefix}${name}/${value}` as Tag;

/** The tag of a {@link LabelFilter}. */
export const labelFilterTag = (label: string): Tag => labelTag(...splitLabel(label));

/** The tags of a notification. Undefined without kind and labels: then nothing is stored or computed. */
export const toTags = ({ kind, labels }: TagFields): Tag[] | undefined => {
  const tags = [
    ...(kind === undefined ? [] : [kindTag(kind)]),
    ...(labels === undefined ? [] : Object.entries(labels).map(([name, value]) => labelTag(name, value))),
  ];
  return tags.length === 0 ? undefined : tags;
};

/** The inverse of {@link toTags}. */
export const fromTags = (tags: readonly string[] = []): { kind?: string; labels?: Record<string, string> } => {
  const kind = tags.find((tag) => tag.startsWith(kindPrefix))?.slice(kindPrefix.length);
  const labels = tags.flatMap((tag): [string, string][] => {
    if (!tag.startsWith(labelPrefix)) return [];
    const split = tag.indexOf("/", labelPrefix.length);
    return [[tag.slice(labelPrefix.length, split), tag.slice(split + 1)]];
  });
  return {
    ...(kind === undefined ? {} : { kind }),
    ...(labels.length === 0 ? {} : { labels: Object.fromEntries(labels) }),
  };
};
