import type { IncomingMessage, ServerResponse } from "node:http";
import type { ErrorCode } from "@herald/contracts";
import createRouter from "find-my-way";
import { HeraldError } from "../herald-error.ts";
import { allowOrigins, preflightServer } from "./cors.ts";
import { createTurns } from "./turns.ts";

/** Data of a request for logs, spans and metrics, beside its status. `route` is a pattern, so its cardinality is low. */
type RequestOutcome = { route: string; code?: ErrorCode };

const outcomes = new WeakMap<ServerResponse, RequestOutcome>();

export const outcomeOf = (response: ServerResponse): RequestOutcome => {
  const outcome = outcomes.get(response) ?? { route: "unmatched" };
  outcomes.set(response, outcome);
  return outcome;
};

/** A matched request, for the handler of its route. */
export type RouteMatch = {
  /** Percent-decoded. */
  readonly params: Readonly<Record<string, string | undefined>>;
  /** As sent, without the query. */
  readonly path: string;
  /** The query as sent, without its `?`. */
  readonly query: string;
  /** The methods that the path supports. */
  readonly allow: string;
};

export type HttpRoute = {
  /** Upper case. A GET answers HEAD too. */
  readonly method: string;
  /** `/api/v1/devices/:id`. A literal path wins over a parameter. */
  readonly pattern: string;
  /** Pages of any origin may read the answers of the pattern, problems included. */
  readonly cors?: boolean | undefined;
  /** Its requests let those of other routes go first. */
  readonly lowPriority?: boolean | undefined;
  /** Answers the request, or throws the error to answer with. */
  readonly serve: (request: IncomingMessage, response: ServerResponse, match: RouteMatch) => Promise<void>;
};

export type ServeRoutes = (request: IncomingMessage, response: ServerResponse) => Promise<void>;

export type ServeRoutesOptions = {
  /** The message of a 404. */
  readonly notFound: string;
  /** Counts a request that no route serves. May refuse it. */
  readonly countUnserved?: (request: IncomingMessage) => Promise<void>;
};

const entryOf = (pattern: string, routes: readonly HttpRoute[]) => {
  const byMethod = new Map(routes.map((route) => [route.method, route]));
  const get = byMethod.get("GET");
  if (get) byMethod.set("HEAD", get); // Node leaves the body out
  const open = routes.filter(({ cors }) => cors);
  const cors = open.length > 0;
  if (cors) {
    const serve = preflightServer(open.map(({ method }) => method));
    byMethod.set("OPTIONS", { method: "OPTIONS", pattern, serve });
  }
  return { pattern, byMethod, cors, allow: [...byMethod.keys()].sort().join(", ") };
};

/**
 * Finds the route of a request in a tree of patterns and serves it. Throws route-not-found, method-not-allowed, malformed-request, and the
 * errors of the route. Uses a tree because express tries all routes one after another.
 */
export const serveRoutes = (
  routes: readonly HttpRoute[],
  { notFound, countUnserved = async () => {} }: ServeRoutesOptions,
): ServeRoutes => {
  const tree = createRouter({
    ignoreTrailingSlash: true,
    maxParamLength: 16_384, // the server's limit of header bytes bounds a path
    onBadUrl: () => undefined,
  });
  for (const [pattern, own] of Map.groupBy(routes, (route) => route.pattern))
    tree.on("GET", pattern, () => undefined, entryOf(pattern, own));
  const turn = createTurns();

  return async (request, response) => {
    const { method = "", url = "" } = request;
    const split = url.indexOf("?");
    const path = split < 0 ? url : url.slice(0, split);
    const found = path === "*" ? null : tree.find("GET", path); // the tree would match it as /
    const entry: ReturnType<typeof entryOf> | null | undefined = found?.store;
    if (!found || !entry) {
      await countUnserved(request);
      if (found) throw new HeraldError("malformed-request", "path: is not valid percent-encoding");
      throw new HeraldError("route-not-found", `path: ${notFound}`);
    }
    const { pattern, byMethod, cors, allow } = entry;
    outcomeOf(response).route = pattern;
    if (cors) allowOrigins(response);
    const route = byMethod.get(method);
    if (route) {
      if (route.lowPriority) {
        await turn();
        // Its client has disconnected.
        if (request.destroyed) return;
      }
      const query = split < 0 ? "" : url.slice(split + 1);
      return route.serve(request, response, { params: found.params, path, query, allow });
    }
    await countUnserved(request);
    if (method !== "OPTIONS")
      throw new HeraldError("method-not-allowed", `method: must be ${allow}`, { headers: { allow } });
    response.writeHead(204, { allow }).end();
  };
};
