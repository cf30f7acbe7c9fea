import { z } from "zod";
import { named } from "../../named.ts";

/** A time in a query. The `+` of an offset must be sent as `%2B`. */
export const Instant = z.iso.datetime({
  offset: true,
  error: "must be an RFC 3339 time with offset, such as 2030-01-31T09:00:00Z",
});

const wholeNumber = (name: string, minimum: number, maximum: number) => {
  const problem = `must be a whole number from ${minimum} to ${maximum}`;
  return z
    .string()
    .regex(/^[0-9]{1,9}$/, problem)
    .transform(Number)
    .pipe(z.number().min(minimum, problem).max(maximum, problem))
    .meta({ id: name });
};

/** The highest page number: far beyond the end of any list, and still a safe number of rows to skip. */
const lastPage = 1_000_000;

const PageNumber = wholeNumber("PageNumber", 1, lastPage);
const PerPage = wholeNumber("PerPage", 1, 100);

/** The query parameters of a list that is read only by key, because counting its rows has no bounded cost. */
export const keysetQuery = {
  per_page: PerPage.optional().meta({ description: "Rows per page. Default: 20" }),
  items: PerPage.optional().meta({ description: "Another name of `per_page`" }),
  limit: PerPage.optional().meta({ description: "Another name of `per_page`" }),
  after: z
    .string()
    .max(200)
    .optional()
    .meta({ description: "Reads by key instead of by number: empty to begin, then the `next` of the page before" }),
};

export const KeysetQuery = z.strictObject(keysetQuery);

/** The query parameters of every other list. `items` and `limit` are other names of `per_page`. */
export const pageQuery = {
  page: PageNumber.optional().meta({ description: "Number of the page. Default: 1" }),
  ...keysetQuery,
};

export const PageQuery = z.strictObject(pageQuery);

/** Filters rows by the time of their creation. */
export const timeRangeQuery = {
  created_after: Instant.optional().meta({ description: "Only rows created at this time or later" }),
  created_before: Instant.optional().meta({ description: "Only rows created before this time" }),
};

/** The query parameters of lists sorted by time, without their filters. */
export const listQuery = {
  ...pageQuery,
  sort: z
    .enum(["created_at", "-created_at"])
    .optional()
    .meta({ description: "`created_at`, the default: oldest first; `-created_at`: newest first" }),
  ...timeRangeQuery,
};

export const ListQuery = z.strictObject(listQuery);

const perPage = z.number().int().min(1).max(100);
const byPage = z.object({ by: z.literal("page"), page: z.number().int().min(1), perPage });
const byKey = z.object({ by: z.literal("key"), after: z.string(), perPage });

/** The requested part of a list: a page by number, or the rows after a key. */
export const PageRequest = z.discriminatedUnion("by", [byPage, byKey]);
export type PageRequest = z.infer<typeof PageRequest>;

/** {@link timeRangeQuery} in requests between services. */
export const timeRange = {
  /** Inclusive. */
  createdAfter: z.iso.datetime({ offset: true }).optional(),
  /** Exclusive. */
  createdBefore: z.iso.datetime({ offset: true }).optional(),
};
const order = { newestFirst: z.boolean().optional(), ...timeRange };

/** {@link PageRequest} for a list sorted by time. */
export const ListRequest = z.discriminatedUnion("by", [byPage.extend(order), byKey.extend(order)]);
export type ListRequest = z.infer<typeof ListRequest>;

/** A numbered page costs as much as all rows before it; from this row on, that is slow. A page by key costs the same at any depth. */
const deepFrom = 1_000;

/** Whether a numbered page is deep in its list. */
export const isDeepPage = ({ page }: { readonly page: PageRequest | KeysetRequest }): boolean =>
  "page" in page && (page.page - 1) * page.perPage >= deepFrom;

/** The Pagy gem's fields: `from` and `to` are 1-based positions of the first and last row shown, 0 when there are none. */
export const Pagination = named("Pagination", {
  count: z.number().int().min(0).meta({ description: "All matching rows" }),
  page: z.number().int().min(1),
  pages: z.number().int().min(1),
  from: z.number().int().min(0),
  to: z.number().int().min(0),
  last: z.number().int().min(1),
});
export type Pagination = z.infer<typeof Pagination>;

/** A numbered page, or a page by key whose `next` is null at the end. */
export type PageOf<Row> = { data: Row[]; pagination: Pagination } | { data: Row[]; next: string | null };

/** The answer of a list. One object, because generated clients hide the fields of a union. */
export const pageOf = <Row extends z.ZodType>(row: Row) =>
  z.object({
    data: z.array(row),
    pagination: Pagination.optional().meta({ description: "Of a numbered page" }),
    next: z
      .string()
      .nullable()
      .optional()
      .meta({ description: "With `after`: the `after` of the next request; null: there are no more" }),
  }) as unknown as z.ZodType<PageOf<z.output<Row>>, PageOf<z.input<Row>>>;

/** A page of a list with {@link keysetQuery}. */
export const keysetPageOf = <Row extends z.ZodType>(row: Row) =>
  z.object({
    data: z.array(row),
    next: z.string().nullable().meta({ description: "`after` of the next request; null: there are no more" }),
  });
export type KeysetPageOf<Row> = { data: Row[]; next: string | null };

/** The requested rows of a keyset list. `after` is empty for the first page. */
export const KeysetRequest = z.object({ after: z.string(), perPage });
export type KeysetRequest = z.infer<typeof KeysetRequest>;
