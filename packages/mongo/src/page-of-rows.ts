import type { PageOf, PageRequest } from "@herald/contracts";
import { decodeAfter, encodeAfter } from "./after-key.ts";

/**
 * One page of rows in memory, such as a list inside a document, in the shape of {@link findPage}. Sorted by the key.
 * @throws HeraldError `validation-failed` when `after` did not come from an earlier page.
 */
export const pageOfRows = <Row>(
  rows: readonly Row[],
  { request, key }: { readonly request: PageRequest; readonly key: (row: Row) => string },
): PageOf<Row> => {
  const sorted = [...rows].sort((one, other) => (key(one) < key(other) ? -1 : 1));
  const { perPage } = request;
  if (request.by === "key") {
    const after = decodeAfter(request.after);
    const rest = after === undefined ? sorted : sorted.filter((row) => key(row) > after);
    const data = rest.slice(0, perPage);
    const last = data.at(-1);
    return { data, next: rest.length > perPage && last !== undefined ? encodeAfter(key(last)) : null };
  }
  const skip = (request.page - 1) * perPage;
  const data = sorted.slice(skip, skip + perPage);
  const pages = Math.max(1, Math.ceil(sorted.length / perPage));
  return {
    data,
    pagination: {
      count: sorted.length,
      page: request.page,
      pages,
      from: data.length === 0 ? 0 : skip + 1,
      to: data.length === 0 ? 0 : skip + data.length,
      last: pages,
    },
  };
};
