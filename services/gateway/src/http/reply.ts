import type { KeysetRequest, ListRequest, listQuery, PageOf } from "@herald/contracts";
import { HeraldError } from "@herald/kit";
import type { z } from "zod";

const replyWith =
  <const Status extends number>(status: Status) =>
  <Data, More = unknown>(data: Data, more?: More) => ({ status, body: { data, ...more } as { data: Data } & More });

/** Replies whose body has `data`, with the fields of `more` beside it. */
export const ok = replyWith(200);
export const created = replyWith(201);
export const accepted = replyWith(202);
export const noContent = () => ({ status: 204 as const, body: undefined });

type Cookie = {
  readonly name: string;
  readonly value: string;
  readonly secure: boolean;
  readonly expires: Date;
  readonly sameSite?: "Strict" | "Lax";
};

/** A `Set-Cookie`. Scripts cannot read the cookie, and browsers do not send it with requests from other sites. */
export const cookie = ({ name, value, secure, expires, sameSite = "Strict" }: Cookie): string =>
  [
    `${name}=${value}`,
    "Path=/",
    `Expires=${expires.toUTCString()}`,
    "HttpOnly",
    `SameSite=${sameSite}`,
    ...(secure ? ["Secure"] : []),
  ].join("; ");

type Search = { readonly path: string; readonly search: URLSearchParams };

type PagingQuery = z.output<z.ZodObject<typeof listQuery>>;

/** Parses the paging parameters, order and time range of a list. Throws validation-failed with all contradictions between them. */
export const pageRequest = (query: PagingQuery): ListRequest => {
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
  if (problems.length > 0) throw new HeraldError("validation-failed", problems);
  const newestFirst = query.sort === "-created_at" || undefined;
  const common = { perPage: sizes[0] ?? 20, newestFirst, createdAfter, createdBefore };
  return query.after === undefined
    ? { by: "page", page: query.page ?? 1, ...common }
    : { by: "key", after: query.after, ...common };
};

/** Parses the paging parameters of a list that is read only by key; without `after` it starts at the beginning. */
export const keysetRequest = (query: Omit<PagingQuery, "page">): KeysetRequest => {
  const { after = "" } = query;
  const { perPage } = pageRequest({ ...query, after });
  return { after, perPage };
};

/** Whether a body is a page of a list. */
export const isPage = (body: unknown): body is PageOf<unknown> =>
  typeof body === "object" && body !== null && ("pagination" in body || "next" in body);

/** Links to other pages of the list (RFC 8288), as absolute paths: only the proxy knows the host. */
export const pageLinks = ({ path, search }: Search, page: PageOf<unknown>): string => {
  const link = (relation: string, parameter: "page" | "after", value: string) => {
    const others = new URLSearchParams(search);
    others.delete("page");
    others.delete("after");
    others.set(parameter, value);
    return `<${path}?${others}>; rel="${relation}"`;
  };
  if (!("pagination" in page)) {
    return [link("first", "after", ""), ...(page.next === null ? [] : [link("next", "after", page.next)])].join(", ");
  }
  const { page: current, last } = page.pagination;
  return [
    link("first", "page", "1"),
    // Past the end, the previous page is the last one with rows.
    ...(current > 1 ? [link("prev", "page", String(Math.min(current - 1, last)))] : []),
    ...(current < last ? [link("next", "page", String(current + 1))] : []),
    link("last", "page", String(last)),
  ].join(", ");
};

/** The 200 response of a list. The server adds links to its other pages. */
export const pageReply = <Page extends PageOf<unknown>>(body: Page) => ({ status: 200 as const, body });
