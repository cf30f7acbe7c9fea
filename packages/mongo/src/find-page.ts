import type { ListRequest, PageOf } from "@herald/contracts";
import type { Collection, Document, Filter, WithId } from "mongodb";
import { decodeAfter, encodeAfter } from "./after-key.ts";
import type { Counts } from "./counts.ts";
import { deadlineOptions } from "./deadline-options.ts";

export type FindPageOptions<Doc extends Document> = {
  /** Includes the project. All its fields are a prefix of the index. */
  readonly filter: Filter<Doc>;
  /** The field that orders the rows: a string, unique among those that the filter lets through. `_id` by default. */
  readonly sort?: string;
  readonly request: ListRequest;
  /** The lowest id that a row made at a time can have. Required where the request may have a time range: ids grow with time. */
  readonly firstId?: (at: Date) => string;
  /** Name of the index that serves filter and sort: before statistics exist, an unhinted page sorts everything. */
  readonly hint: string;
  readonly projection?: Document;
  /** A row's value of the sort field; `_id` as it is by default. */
  readonly key?: (doc: WithId<Doc>) => string;
  /** One for a store. */
  readonly counts: Counts;
};

const createdRange = (
  { createdAfter, createdBefore }: ListRequest,
  firstId: ((at: Date) => string) | undefined,
): Document | undefined => {
  if (createdAfter === undefined && createdBefore === undefined) return undefined;
  if (firstId === undefined) throw new Error("this list has no ids that grow with time");
  const range: [string, string | undefined][] = [
    ["$gte", createdAfter],
    ["$lt", createdBefore],
  ];
  return Object.fromEntries(
    range.flatMap(([bound, at]) => (at === undefined ? [] : [[bound, firstId(new Date(at))] as const])),
  );
};

/**
 * One page of a list: by number with counts, or the rows after a key. A page past the end is empty.
 * @throws HeraldError `validation-failed` when `after` did not come from an earlier page.
 */
export const findPage = async <Doc extends Document>(
  collection: Collection<Doc>,
  options: FindPageOptions<Doc>,
): Promise<PageOf<WithId<Doc>>> => {
  const { sort = "_id", request, hint, projection, counts } = options;
  const range = createdRange(request, options.firstId);
  const filter = (range ? { ...options.filter, _id: range } : options.filter) as Filter<Doc>;
  const direction = request.newestFirst === true ? -1 : 1;
  const rows = (where: Filter<Doc>, skip: number, limit: number) =>
    collection
      .find(where, { hint, ...deadlineOptions(), ...(projection ? { projection } : {}) })
      .sort({ [sort]: direction })
      .skip(skip)
      .limit(limit)
      // All rows in one reply: a second would cost as much as the first.
      .batchSize(limit + 1)
      .toArray();

  const { perPage } = request;
  if (request.by === "key") {
    const after = decodeAfter(request.after);
    const from = after === undefined ? undefined : { [sort]: direction === 1 ? { $gt: after } : { $lt: after } };
    // One more than asked for says whether there is a next.
    const found = await rows(from ? ({ $and: [filter, from] } as Filter<Doc>) : filter, 0, perPage + 1);
    const data = found.slice(0, perPage);
    const last = data.at(-1);
    const { key = (doc: WithId<Doc>) => String(doc[sort]) } = options;
    return { data, next: found.length > perPage && last ? encodeAfter(key(last)) : null };
  }

  const { page } = request;
  const skip = (page - 1) * perPage;
  const [data, counted] = await Promise.all([rows(filter, skip, perPage), counts.count({ collection, filter, hint })]);
  // A cached count must not contradict the rows.
  const count = data.length > 0 ? Math.max(counted, skip + data.length) : counted;
  const pages = Math.max(1, Math.ceil(count / perPage));
  return {
    data,
    pagination: {
      count,
      page,
      pages,
      from: data.length === 0 ? 0 : skip + 1,
      to: data.length === 0 ? 0 : skip + data.length,
      last: pages,
    },
  };
};
