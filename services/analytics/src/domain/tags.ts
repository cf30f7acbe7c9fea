import type { ProjectId, Tag } from "@herald/contracts";
import type { StatsDelta } from "./stats-delta.ts";

/**
 * A property that has values: `kind`, `push_type`, `label` (its values are the names of labels), or `label/<name>`. The scopes of its values begin
 * with the dimension.
 */
export type Dimension = "kind" | "push_type" | "label" | `label/${string}`;

/** How many values of a dimension have statistics in a month. Others are counted together, so that senders cannot grow them endlessly. */
export const maxValuesOf = (dimension: Dimension): number => (dimension === "label" ? 100 : 1_000);

/** Values beyond the limit that are stored, so that statistics can name them. */
export const maxNamed = 100;

/** `kind/order` is `order` of `kind`; `label/campaign/spring` is `spring` of `label/campaign`. */
export const partsOf = (tag: Tag): { dimension: Dimension; value: string } => {
  const split = tag.startsWith("label/") ? tag.indexOf("/", "label/".length) : tag.indexOf("/");
  return { dimension: tag.slice(0, split) as Dimension, value: tag.slice(split + 1) };
};

/** Escapes a value for a field name, where dots and dollar signs have a meaning. `v` keeps it apart from JavaScript's own names. */
export const fieldOfValue = (value: string): string =>
  `v${value.replace(/[%.$\0]/g, (sign) => `%${sign.charCodeAt(0).toString(16).padStart(2, "0")}`)}`;
export const valueOfField = (field: string): string =>
  field.slice(1).replace(/%(..)/g, (_, code: string) => String.fromCharCode(Number.parseInt(code, 16)));

/** The start of the month in UTC, and of the next one. */
export const monthOf = (at: Date): Date => new Date(Date.UTC(at.getUTCFullYear(), at.getUTCMonth(), 1));
export const nextMonth = (month: Date): Date => new Date(Date.UTC(month.getUTCFullYear(), month.getUTCMonth() + 1, 1));

/** The months that a range touches. */
export const monthsOf = (from: Date, to: Date): Date[] => {
  const months: Date[] = [];
  for (let month = monthOf(from); month < to; month = nextMonth(month)) months.push(month);
  return months;
};

/** The values of one dimension in one month. */
export type WantedTags = {
  readonly projectId: ProjectId;
  readonly dimension: Dimension;
  readonly month: Date;
  readonly values: Set<string>;
};

export const wantedKey = ({ projectId, dimension, month }: Omit<WantedTags, "values">): string =>
  `${projectId}/${dimension}/${month.toISOString().slice(0, 7)}`;

/** The values that deltas count, by dimension and month. */
export const valuesIn = (deltas: readonly Pick<StatsDelta, "projectId" | "increments">[]): Map<string, WantedTags> => {
  const wanted = new Map<string, WantedTags>();
  const want = (projectId: ProjectId, dimension: Dimension, month: Date, value: string): void => {
    const of = { projectId, dimension, month };
    const key = wantedKey(of);
    const known = wanted.get(key);
    if (known) known.values.add(value);
    else wanted.set(key, { ...of, values: new Set([value]) });
  };
  for (const { projectId, increments } of deltas)
    for (const { tags, slot } of increments)
      for (const tag of tags ?? []) {
        const { dimension, value } = partsOf(tag);
        const month = monthOf(slot);
        if (dimension.startsWith("label/")) want(projectId, "label", month, dimension.slice("label/".length));
        want(projectId, dimension, month, value);
      }
  return wanted;
};
