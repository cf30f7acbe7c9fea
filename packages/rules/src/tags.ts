import { type ActivityReference, type PushType, splitLabel, type Tag } from "@herald/contracts";

type TagFields = {
  readonly kind?: string | undefined;
  readonly push_type?: PushType | undefined;
  readonly labels?: Readonly<Record<string, string>> | undefined;
  readonly activity?: ActivityReference | undefined;
};

const kindPrefix = "kind/";
const labelPrefix = "label/";
const pushTypePrefix = "push_type/";
const activityPrefix = "activity/";

export const kindTag = (kind: string): Tag => `${kindPrefix}${kind}` as Tag;
export const pushTypeTag = (type: PushType): Tag => `${pushTypePrefix}${type}`;
const labelTag = (name: string, value: string): Tag => `${labelPrefix}${name}/${value}` as Tag;

/** The tag of a `LabelFilter`. */
export const labelFilterTag = (label: string): Tag => labelTag(...splitLabel(label));

const activityTag = ({ id, event, version }: ActivityReference): Tag =>
  `${activityPrefix}${id}/${event}/${version ?? ""}`;

const fromActivityTag = (tag: string): ActivityReference => {
  const [id = "", event, version = ""] = tag.slice(activityPrefix.length).split("/");
  return { id, event: event as ActivityReference["event"], ...(version !== "" && { version: Number(version) }) };
};

/** The tags of a notification. Undefined without any: then nothing is stored or computed. */
export const toTags = ({ kind, labels, push_type: type, activity }: TagFields): Tag[] | undefined => {
  const tags = [
    ...(kind === undefined ? [] : [kindTag(kind)]),
    ...(type === undefined ? [] : [pushTypeTag(type)]),
    ...(activity === undefined ? [] : [activityTag(activity)]),
    ...(labels === undefined ? [] : Object.entries(labels).map(([name, value]) => labelTag(name, value))),
  ];
  return tags.length === 0 ? undefined : tags;
};

/** The tags that have statistics: one activity has too few pushes. */
export const countedTags = (tags: readonly Tag[]): Tag[] => tags.filter((tag) => !tag.startsWith(activityPrefix));

/** The inverse of {@link toTags}. */
export const fromTags = (
  tags: readonly string[] = [],
): { kind?: string; labels?: Record<string, string>; push_type?: PushType; activity?: ActivityReference } => {
  const kind = tags.find((tag) => tag.startsWith(kindPrefix))?.slice(kindPrefix.length);
  const type = tags.find((tag) => tag.startsWith(pushTypePrefix))?.slice(pushTypePrefix.length);
  const activity = tags.find((tag) => tag.startsWith(activityPrefix));
  const labels = tags.flatMap((tag): [string, string][] => {
    if (!tag.startsWith(labelPrefix)) return [];
    const split = tag.indexOf("/", labelPrefix.length);
    return [[tag.slice(labelPrefix.length, split), tag.slice(split + 1)]];
  });
  return {
    ...(kind === undefined ? {} : { kind }),
    ...(type === undefined ? {} : { push_type: type as PushType }),
    ...(activity === undefined ? {} : { activity: fromActivityTag(activity) }),
    ...(labels.length === 0 ? {} : { labels: Object.fromEntries(labels) }),
  };
};
