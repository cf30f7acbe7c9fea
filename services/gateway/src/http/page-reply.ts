import { type KeysetRequest, type ListRequest, type PageOf, toPageRequest } from "@herald/contracts";
import { HeraldError } from "@herald/kit";

type Search = { readonly path: string; readonly search: URLSearchParams };

/** Parses the paging parameters, order and time range of a list. Throws validation-failed when they contradict each other. */
export const pageRequest = (query: Parameters<typeof toPageRequest>[0]): ListRequest => {
  const parsed = toPageRequest(query);
  if ("problems" in parsed) throw new HeraldError("validation-failed", parsed.problems);
  return parsed.request;
};

/** The same for a list that is read by key alone; without `after` it begins. */
export const keysetRequest = (query: Omit<Parameters<typeof toPageRequest>[0], "page">): KeysetRequest => {
  const { after = "" } = query;
  const { perPage } = pageRequest({ ...query, after });
  return { after, perPage };
};

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

/** The 200 response of a list. */
export const pageReply = <Page extends PageOf<unknown>>(request: Search, page: Page) => ({
  status: 200 as const,
  body: page,
  headers: { link: pageLinks(request, page) },
});
