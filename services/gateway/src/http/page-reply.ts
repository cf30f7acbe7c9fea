import { type PageOf, type PageRequest, toPageRequest } from "@herald/contracts";
import { HeraldError } from "@herald/kit";

type Search = { readonly path: string; readonly search: URLSearchParams };

/** What a list is asked for. Throws validation-failed where its parameters contradict each other. */
export const pageRequest = (query: Parameters<typeof toPageRequest>[0]): PageRequest => {
  const parsed = toPageRequest(query);
  if ("problems" in parsed) throw new HeraldError("validation-failed", parsed.problems);
  return parsed.request;
};

/** Links to other pages of the same list (RFC 8288), as absolute paths: what stands before them is the proxy's affair. */
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
    // Past the end, the page before is the last one that has rows.
    ...(current > 1 ? [link("prev", "page", String(Math.min(current - 1, last)))] : []),
    ...(current < last ? [link("next", "page", String(current + 1))] : []),
    link("last", "page", String(last)),
  ].join(", ");
};

/** The 200 of a list. */
export const pageReply = <Row>(request: Search, page: PageOf<Row>) => ({
  status: 200 as const,
  body: page,
  headers: { link: pageLinks(request, page) },
});
