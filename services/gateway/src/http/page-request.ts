import type { ListRequest, listQuery } from "@herald/contracts";
import type { z } from "zod";

/** Converts a list's query parameters to a request, or to all their problems. */
export const toPageRequest = (
  query: z.output<z.ZodObject<typeof listQuery>>,
): { request: ListRequest } | { problems: string[] } => {
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
  const newestFirst = query.sort === "-created_at" || undefined;
  const common = { perPage: sizes[0] ?? 20, newestFirst, createdAfter, createdBefore };
  return query.after === undefined
    ? { request: { by: "page", page: query.page ?? 1, ...common } }
    : { request: { by: "key", after: query.after, ...common } };
};
