import { hash } from "node:crypto";
import type { ListRequest, PageOf, PageRequest } from "@herald/contracts";
import { HeraldError } from "@herald/kit";
import type { Collection, Document, Filter, FindOptions, Sort, WithId } from "mongodb";
import { type Counts, deadlineOptions } from "./counts.ts";
import { having } from "./ensure-indexes.ts";

/** Enough to notice a key that was cut off or typed by hand. */
const checksumLength = 4;
const checksum = (key: string): string => hash("sha256", `after ${key}`, "base64url").slice(0, checksumLength);

/** The opaque `next` of a walk: the last row's key and a checksum, in base64url. */
export const encodeAfter = (key: string): string => checksum(key) + Buffer.from(key).toString("base64url");

/**
 * The key behind an `after`; undefined for an empty one, which begins the walk.
 * @throws HeraldError `validation-failed` when `after` is not a `next` of an earlier page.
 */
export const decodeAfter = (after: string): string | undefined => {
  if (after === "") return undefined;
  const key = Buffer.from(after.slice(checksumLength), "base64url").toString();
  if (key !== "" && encodeAfter(key) === after) return key;
  throw new HeraldError("validation-failed", "after: must be empty, to begin, or the `next` of the answer before");
};

/** Up to `limit` rows in one reply, because a second reply would cost as much as the first. Without `sort` in the index's order. */
export const findSome = <Doc extends Document>(
  collection: Collection<Doc>,
  filter: Filter<Doc>,
  options: FindOptions & { readonly hint: string; readonly limit: number },
): Promise<WithId<Doc>[]> => collection.find(filter, { ...options, batchSize: options.limit + 1 }).toArray();

/**
 * Walks from project to project by an index that begins with the project: each call resolves to the first project with a document whose id
 * is greater than the given one, and to undefined behind the last. `sort`: the fields of the index; the project alone by default.
 */
export const projectAfter =
  <Doc extends { readonly projectId: string }>(
    collection: Collection<Doc>,
    { hint, sort = { projectId: 1 }, filter = {} }: { hint: string; sort?: Sort; filter?: Document },
  ) =>
  async (projectId: string): Promise<Doc["projectId"] | undefined> => {
    const later = { ...filter, projectId: { $gt: projectId } } as unknown as Filter<Doc>;
    const found = await collection.findOne(later, { hint, sort, projection: { projectId: 1 } });
    return found?.projectId;
  };

export type FindPageOptions<Doc extends Document> = {
  /** Includes the project. All its fields are a prefix of the index: a count reads every document for any other field. */
  readonly filter: Filter<Doc>;
  /**
   * Leaves out the rows that have this field, which must be few: they are counted apart. `hint`: name of a partial index of them, which
   * begins with the project.
   */
  readonly without?: { readonly field: string; readonly hint: string };
  /**
   * How the rows are counted when `filter` is not a prefix of the index, because most rows match it: those of a wider filter, less those
   * that match `except` too, by the index `hint`.
   */
  readonly allBut?: { readonly filter: Filter<Doc>; readonly except: Filter<Doc>; readonly hint: string } | undefined;
  /** The field that orders the rows: a string, unique among the rows that match the filter. `_id` by default. */
  readonly sort?: string;
  readonly request: ListRequest;
  /** The lowest id that a row made at a time can have. Required if the request may have a time range: ids grow with time. */
  readonly firstId?: (at: Date) => string;
  /** Name of the index that serves filter and sort: without a hint, a database without statistics sorts all rows. */
  readonly hint: string;
  readonly projection?: Document;
  /** The key of a row for `next`; by default its value of the sort field. */
  readonly key?: (doc: WithId<Doc>) => string;
  /** The counts of the store. */
  readonly counts: Counts;
};

const createdRange = ({ createdAfter, createdBefore }: ListRequest, firstId: FindPageOptions<Document>["firstId"]) => {
  if (createdAfter === undefined && createdBefore === undefined) return undefined;
  if (firstId === undefined) throw new Error("this list has no ids that grow with time");
  return {
    ...(createdAfter !== undefined && { $gte: firstId(new Date(createdAfter)) }),
    ...(createdBefore !== undefined && { $lt: firstId(new Date(createdBefore)) }),
  };
};

/** The first of `rows`, which are all that follow or at least one more than a page. */
export const pageByKey = <Row>(rows: readonly Row[], perPage: number, key: (row: Row) => string): PageOf<Row> => {
  const data = rows.slice(0, perPage);
  const last = data.at(-1);
  return { data, next: rows.length > perPage && last !== undefined ? encodeAfter(key(last)) : null };
};

/**
 * One page of a list: by number with counts, or the rows after a key. A page past the end is empty.
 * @throws HeraldError `validation-failed` when `after` did not come from an earlier page.
 */
export const findPage = async <Doc extends Document>(
  collection: Collection<Doc>,
  options: FindPageOptions<Doc>,
): Promise<PageOf<WithId<Doc>>> => {
  const { sort = "_id", request, hint, projection, counts, without, allBut } = options;
  const range = createdRange(request, options.firstId);
  const inRange = (filter: Filter<Doc>) => (range ? { ...filter, _id: range } : filter) as Filter<Doc>;
  const all = inRange(options.filter);
  const filter = (without ? { ...all, [without.field]: { $exists: false } } : all) as Filter<Doc>;
  const direction = request.newestFirst === true ? -1 : 1;
  const rows = (where: Filter<Doc>, skip: number, limit: number) =>
    findSome(collection, where, {
      ...{ hint, sort: { [sort]: direction }, skip, limit },
      ...deadlineOptions(),
      ...(projection ? { projection } : {}),
    });

  const { perPage } = request;
  if (request.by === "key") {
    const after = decodeAfter(request.after);
    const from = after === undefined ? undefined : { [sort]: direction === 1 ? { $gt: after } : { $lt: after } };
    // One more row than requested shows whether there is a next page.
    const found = await rows(from ? ({ $and: [filter, from] } as Filter<Doc>) : filter, 0, perPage + 1);
    return pageByKey(found, perPage, options.key ?? ((doc) => String(doc[sort])));
  }

  const { page } = request;
  const skip = (page - 1) * perPage;
  const [data, counted, excepted, leftOut] = await Promise.all([
    rows(filter, skip, perPage),
    counts.count({ collection, filter: allBut ? inRange(allBut.filter) : all, hint }),
    allBut
      ? counts.count({ collection, filter: inRange({ ...allBut.filter, ...allBut.except }), hint: allBut.hint })
      : 0,
    without ? counts.count({ collection, filter: { ...all, ...having(without.field) }, hint: without.hint }) : 0,
  ]);
  // A cached count must not contradict the rows.
  const count = Math.max(counted - excepted - leftOut, data.length > 0 ? skip + data.length : 0);
  return { data, pagination: paginationOf({ count, page, perPage }, data.length) };
};

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
    return pageByKey(rest, perPage, key);
  }
  const skip = (request.page - 1) * perPage;
  const data = sorted.slice(skip, skip + perPage);
  return { data, pagination: paginationOf({ count: sorted.length, page: request.page, perPage }, data.length) };
};

/** A page with a view of each row. */
export const mapPage = <Page extends { readonly data: readonly unknown[] }, View>(
  page: Page,
  view: (row: Page["data"][number]) => View,
) => ({ ...page, data: page.data.map(view) }) as unknown as WithData<Page, View>;

type WithData<Page, View> = Page extends unknown ? Omit<Page, "data"> & { data: View[] } : never;

/** The `pagination` of a page by number that shows `shown` of `count` rows. */
export const paginationOf = (
  { count, page, perPage }: { readonly count: number; readonly page: number; readonly perPage: number },
  shown: number,
) => {
  const pages = Math.max(1, Math.ceil(count / perPage));
  const skip = (page - 1) * perPage;
  return { count, page, pages, from: shown === 0 ? 0 : skip + 1, to: shown === 0 ? 0 : skip + shown, last: pages };
};
