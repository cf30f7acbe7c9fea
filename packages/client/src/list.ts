import type { Pagination } from "./api-types.ts";
import type { CallOptions, Http } from "./http.ts";

export type ListOptions = CallOptions & {
  /** Rows per page, at most 100. */
  readonly perPage?: number | undefined;
};

/** Order and time range of a list. */
export type TimeListOptions = ListOptions & {
  /** `created_at`, the default: oldest first; `-created_at`: newest first. */
  readonly sort?: "created_at" | "-created_at" | undefined;
  /** Only rows created at this time or later. */
  readonly createdAfter?: Date | string | undefined;
  /** Only rows created before this time. */
  readonly createdBefore?: Date | string | undefined;
};

/** A list that is read page by page while you iterate: `for await (const user of herald.users.list())`. */
export type KeysetList<Row> = AsyncIterable<Row> & {
  /** Iterates over pages instead of rows. */
  pages(): AsyncIterable<Row[]>;
};

/** A list that can be read by page number too. */
export type List<Row> = KeysetList<Row> & {
  /** Reads one page by its number, with the count of all rows. */
  page(number?: number): Promise<{ data: Row[]; pagination: Pagination }>;
};

const maxPerPage = 100;

/** Iterates by cursor, so every page costs the same. */
export const list = <Row>(
  http: Http,
  path: string,
  { signal, perPage = maxPerPage, ...filters }: ListOptions & Readonly<Record<string, unknown>> = {},
): List<Row> => {
  const read = <Page>(position: { page: number } | { after: string }) =>
    http.page<Page>(path, { query: { ...filters, perPage, ...position }, signal });
  async function* pages() {
    for (let after: string | null = ""; after !== null; ) {
      const page: { data: Row[]; next: string | null } = await read({ after });
      yield page.data;
      after = page.next;
    }
  }
  return {
    pages,
    page: (number = 1) => read({ page: number }),
    async *[Symbol.asyncIterator]() {
      for await (const rows of pages()) yield* rows;
    },
  };
};
