import { z } from "zod";
import { Instant } from "./instant.ts";

const wholeNumber = (name: string, minimum: number, maximum: number) =>
  z
    .string()
    .regex(/^[0-9]{1,9}$/, `must be a whole number from ${minimum} to ${maximum}`)
    .transform(Number)
    .pipe(
      z
        .number()
        .min(minimum, `must be a whole number from ${minimum} to ${maximum}`)
        .max(maximum, `must be a whole number from ${minimum} to ${maximum}`),
    )
    .meta({ id: name });

/** Highest page that is answered: far past any list, and still a safe number of rows to skip over. */
const lastPage = 1_000_000;

const PageNumber = wholeNumber("PageNumber", 1, lastPage);
const PerPage = wholeNumber("PerPage", 1, 100);

/** The query parameters of a list that is read by key alone, because counting its rows has no bounded cost. */
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

/** The query parameters of every other list. `items` and `limit` are other names of `per_page`. */
export const pageQuery = {
  page: PageNumber.optional().meta({ description: "Number of the page. Default: 1" }),
  ...keysetQuery,
};

/** When rows were created. */
export const timeRangeQuery = {
  created_after: Instant.optional().meta({ description: "Only rows created at this time or later" }),
  created_before: Instant.optional().meta({ description: "Only rows created before this time" }),
};

/** The query parameters of lists that are sorted by time, beside their filters. */
export const listQuery = {
  ...pageQuery,
  sort: z
    .enum(["created_at", "-created_at"])
    .optional()
    .meta({ description: "`created_at`, the default: oldest first; `-created_at`: newest first" }),
  ...timeRangeQuery,
};

const perPage = z.number().int().min(1).max(100);
const byPage = z.object({ by: z.literal("page"), page: z.number().int().min(1), perPage });
const byKey = z.object({ by: z.literal("key"), after: z.string(), perPage });

/** What a list is asked for: a page by number, or the rows after a key. */
export const PageRequest = z.discriminatedUnion("by", [byPage, byKey]);
export type PageRequest = z.infer<typeof PageRequest>;

/** The same between services. */
export const timeRange = {
  /** Inclusive. */
  createdAfter: z.iso.datetime({ offset: true }).optional(),
  /** Exclusive. */
  createdBefore: z.iso.datetime({ offset: true }).optional(),
};
const order = { newestFirst: z.boolean().optional(), ...timeRange };

/** The same of a list that is sorted by time. */
export const ListRequest = z.discriminatedUnion("by", [byPage.extend(order), byKey.extend(order)]);
export type ListRequest = z.infer<typeof ListRequest>;

/** A page behind so many rows costs as much as reading them: by key a page costs the same at any depth. */
const deepFrom = 1_000;

/** Whether a numbered page lies deep in its list. */
export const isDeepPage = ({ page }: { readonly page: PageRequest }): boolean =>
  page.by === "page" && (page.page - 1) * page.perPage >= deepFrom;

/** The Pagy gem's fields: `from` and `to` are 1-based positions of the first and last row shown, 0 when there are none. */
export const Pagination = z
  .object({
    count: z.number().int().min(0).meta({ description: "All matching rows" }),
    page: z.number().int().min(1),
    pages: z.number().int().min(1),
    from: z.number().int().min(0),
    to: z.number().int().min(0),
    last: z.number().int().min(1),
  })
  .meta({ id: "Pagination" });
export type Pagination = z.infer<typeof Pagination>;

/** The answer of a list: numbered pages, or a walk by key whose `next` is null at its end. */
export const pageOf = <Row extends z.ZodType>(row: Row) =>
  z.union([
    z.object({ data: z.array(row), pagination: Pagination }),
    z.object({ data: z.array(row), next: z.string().nullable() }),
  ]);
export type PageOf<Row> = { data: Row[]; pagination: Pagination } | { data: Row[]; next: string | null };

/** A list's answer to {@link keysetQuery}. */
export const keysetPageOf = <Row extends z.ZodType>(row: Row) =>
  z.object({
    data: z.array(row),
    next: z.string().nullable().meta({ description: "`after` of the next request; null: there are no more" }),
  });
export type KeysetPageOf<Row> = { data: Row[]; next: string | null };

/** Which rows of such a list are asked for. `after` is empty to begin. */
export const KeysetRequest = z.object({ after: z.string(), perPage: z.number().int().min(1).max(100) });
export type KeysetRequest = z.infer<typeof KeysetRequest>;

/** Turns a list's query parameters into what to ask for, or into what is wrong with them. */
export const toPageRequest = (query: {
  page?: number | undefined;
  per_page?: number | undefined;
  items?: number | undefined;
  limit?: number | undefined;
  after?: string | undefined;
  sort?: "created_at" | "-created_at" | undefined;
  created_after?: string | undefined;
  created_before?: string | undefined;
}): { request: ListRequest } | { problems: string[] } => {
  const sizes = [query.per_page, query.items, query.limit].filter((size) => size !== undefined);
  const problems: string[] = [];
  if (sizes.length > 1) problems.push("per_page: `items` and `limit` are other names of it: send one of the three");
  if (query.after !== undefined && query.page !== undefined) problems.push("after: cannot be combined with page");
  const { created_after: createdAfter, created_before: createdBefore } = query;
  if (
    createdAfter !== undefined &&
    createdBefore !== undefined &&
    Date.parse(createdAfter) >= Date.parse(createdBefore)
  )
    problems.push("created_before: must be later than created_after");
  if (problems.length > 0) return { problems };
  const common = {
    perPage: sizes[0] ?? 20,
    ...(query.sort === "-created_at" && { newestFirst: true }),
    ...(createdAfter !== undefined && { createdAfter }),
    ...(createdBefore !== undefined && { createdBefore }),
  };
  return query.after === undefined
    ? { request: { by: "page", page: query.page ?? 1, ...common } }
    : { request: { by: "key", after: query.after, ...common } };
};
