import type { Router } from "express";
import { expressPath, isLiteral, type Route } from "./route.ts";
import type { ServeRoute } from "./serve-route.ts";

/** Adds the routes to an express router. Errors go on to the app's error handler. */
export const mountRoutes = (router: Router, routes: ReadonlyMap<Route, ServeRoute>): void => {
  const literals: ReadonlySet<string> = new Set([...routes.keys()].filter(isLiteral).map(({ path }) => path));
  for (const [route, serve] of routes) {
    router[route.method](expressPath(route), async (request, response, next) => {
      // `GET /dead-letters/replay` does not ask for the dead letter "replay": it is a 405, which the app answers.
      if (!isLiteral(route) && literals.has(request.path)) return next();
      await serve(request, response, { params: request.params, url: request.originalUrl });
    });
  }
};
