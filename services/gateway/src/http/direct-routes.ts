import type { IncomingMessage } from "node:http";
import type { DirectRoute } from "@herald/kit";
import { expressPath, type Route } from "./route.ts";
import type { ServeRoute } from "./serve-route.ts";

/** Where a path has come to, segment by segment. */
type Place = {
  readonly literal: Map<string, Place>;
  param?: Place;
  /** By method, in upper case. */
  readonly routes: Map<
    string,
    { readonly pattern: string; readonly names: readonly string[]; readonly serve: ServeRoute }
  >;
};

const newPlace = (): Place => ({ literal: new Map(), routes: new Map() });

const nameOf = (segment: string): string | undefined => /^\{(\w+)\}$/.exec(segment)?.[1];

/** The place behind a segment, made where there is none yet. */
const stepInto = (place: Place, segment: string): Place => {
  if (nameOf(segment) !== undefined) {
    place.param ??= newPlace();
    return place.param;
  }
  const next = place.literal.get(segment) ?? newPlace();
  place.literal.set(segment, next);
  return next;
};

/** Nothing encoded, nothing empty, no slash at the end: as every client of ours writes a path. */
const plain = /^(?:\/[\w.~-]+)+$/;

/**
 * Finds the route of a request by walking its path once, where express tries one route after the other. What is written in any other
 * way than declared (encoded, with a slash at the end, with a method such as HEAD) is not found here and left to express.
 */
export const directRoutes = (
  routes: ReadonlyMap<Route, ServeRoute>,
): ((request: IncomingMessage) => DirectRoute | undefined) => {
  const root = newPlace();
  for (const [route, serve] of routes) {
    const segments = route.path.slice(1).split("/");
    const end = segments.reduce(stepInto, root);
    const names = segments.flatMap((segment) => nameOf(segment) ?? []);
    end.routes.set(route.method.toUpperCase(), { pattern: expressPath(route), names, serve });
  }
  return ({ method = "", url = "" }) => {
    const split = url.indexOf("?");
    const path = split < 0 ? url : url.slice(0, split);
    if (!plain.test(path)) return undefined;
    const values: string[] = [];
    let place: Place | undefined = root;
    for (const segment of path.slice(1).split("/")) {
      const literal: Place | undefined = place.literal.get(segment);
      if (literal === undefined) values.push(segment);
      place = literal ?? place.param;
      if (place === undefined) return undefined;
    }
    const found = place.routes.get(method);
    if (found === undefined) return undefined;
    const { pattern, names, serve } = found;
    const params = Object.fromEntries(names.map((name, index) => [name, values[index]]));
    return { pattern, serve: (request, response) => serve(request, response, { params, url }) };
  };
};
