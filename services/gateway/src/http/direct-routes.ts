import type { IncomingMessage } from "node:http";
import type { DirectRoute } from "@herald/kit";
import createRouter, { type HTTPMethod } from "find-my-way";
import { expressPath, type Route } from "./route.ts";
import type { ServeRoute } from "./serve-route.ts";

type Found = { readonly pattern: string; readonly serve: ServeRoute };

/** Nothing encoded, nothing empty, no slash at the end: as every client of ours writes a path. */
const plain = /^(?:\/[\w.~-]+)+$/;

/**
 * Finds the route of a request by walking its path once, where express tries one route after the other. What is written in any other
 * way than declared (encoded, with a slash at the end, with a method such as HEAD) is not found here and left to express.
 */
export const directRoutes = (
  routes: ReadonlyMap<Route, ServeRoute>,
): ((request: IncomingMessage) => DirectRoute | undefined) => {
  const router = createRouter();
  const methods = new Set([...routes.keys()].map(({ method }) => method));
  const patterns = Map.groupBy(routes, ([route]) => expressPath(route));
  for (const [pattern, declared] of patterns) {
    for (const method of methods) {
      const serve = declared.find(([route]) => route.method === method)?.[1];
      // A method that the path does not take is noted too, or `GET /things/all` would be a thing named so.
      const found: Found | undefined = serve && { pattern, serve };
      router.on(method.toUpperCase() as HTTPMethod, pattern, () => undefined, found);
    }
  }
  return ({ method = "", url = "" }) => {
    const split = url.indexOf("?");
    const path = split < 0 ? url : url.slice(0, split);
    const place = plain.test(path) ? router.find(method as HTTPMethod, path) : null;
    if (place === null || place.store === null) return undefined;
    const { pattern, serve }: Found = place.store;
    return { pattern, serve: (request, response) => serve(request, response, { params: place.params, url }) };
  };
};
