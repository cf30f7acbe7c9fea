import type { IncomingMessage, ServerResponse } from "node:http";
import { type DirectRoute, HeraldError } from "@herald/kit";
import createRouter from "find-my-way";
import { preflightHeaders } from "./cors.ts";
import { type Route, routePattern } from "./route.ts";
import type { ServeRoute } from "./serve-route.ts";

type Place = {
  readonly pattern: string;
  /** By method, upper case. */
  readonly serve: ReadonlyMap<string, ServeRoute>;
  readonly allow: string;
  /** What a browser is told that asks before it calls; undefined where no browser calls. */
  readonly preflight?: Readonly<Record<string, string>> | undefined;
};

const placeOf = (pattern: string, declared: readonly (readonly [Route, ServeRoute])[]): Place => {
  const serve = new Map(declared.map(([route, one]) => [route.method.toUpperCase(), one]));
  const get = serve.get("GET");
  // A HEAD does what the GET does; Node leaves its body out.
  if (get) serve.set("HEAD", get);
  const forBrowsers = declared.flatMap(([route]) => (route.cors ? [route.method.toUpperCase()] : []));
  return {
    pattern,
    serve,
    allow: [...serve.keys(), ...(forBrowsers.length > 0 ? ["OPTIONS"] : [])].sort().join(", "),
    preflight: forBrowsers.length > 0 ? preflightHeaders(forBrowsers) : undefined,
  };
};

const answerEmpty = (response: ServerResponse, headers: Readonly<Record<string, string>>): void => {
  response.writeHead(204, headers).end();
};

/**
 * Finds the declared route of a request by walking its path once, where express tries one route after the other; a path that has other
 * methods is answered here too. A literal path is no other's parameter. `admit` counts who has shown no credential.
 */
export const directRoutes = (
  routes: ReadonlyMap<Route, ServeRoute>,
  admit: (request: IncomingMessage) => Promise<void>,
): ((request: IncomingMessage) => DirectRoute | undefined) => {
  // Schemas judge parameters, however long: the server's limit of headers bounds a path.
  const router = createRouter({
    ignoreTrailingSlash: true,
    maxParamLength: 16_384,
    onBadUrl: () => undefined,
  });
  for (const [pattern, declared] of Map.groupBy(routes, ([route]) => routePattern(route)))
    router.on("GET", pattern, () => undefined, placeOf(pattern, declared));

  const serveOther =
    ({ allow, preflight }: Place): DirectRoute["serve"] =>
    async (request, response) => {
      // It costs no more than refusing it would, and the open of a notification waits for it.
      if (request.method === "OPTIONS" && preflight) return answerEmpty(response, { allow, ...preflight });
      await admit(request);
      if (request.method === "OPTIONS") return answerEmpty(response, { allow });
      throw new HeraldError("method-not-allowed", `method: must be ${allow}`, { headers: { allow } });
    };
  const badPath: DirectRoute = {
    pattern: "unmatched",
    serve: async (request) => {
      await admit(request);
      throw new HeraldError("malformed-request", "path: is not valid percent-encoding");
    },
  };

  return ({ method = "", url = "" }) => {
    const split = url.indexOf("?");
    const found = router.find("GET", split < 0 ? url : url.slice(0, split));
    if (found === null) return undefined;
    const place: Place | null = found.store;
    // `OPTIONS *` and the like are no bad path, and lead nowhere.
    if (place === null) return url.includes("%") ? badPath : undefined;
    const serve = place.serve.get(method);
    const { pattern } = place;
    if (serve === undefined) return { pattern, serve: serveOther(place) };
    return { pattern, serve: (request, response) => serve(request, response, { params: found.params, url }) };
  };
};
