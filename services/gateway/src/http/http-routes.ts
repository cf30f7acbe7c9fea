import type { IncomingMessage } from "node:http";
import { HeraldError, type HttpRoute, serveRoutes } from "@herald/kit";
import type { Request, Response } from "express";
import { consoleRoutes } from "../console/serve-console.ts";
import { mountDocs } from "../docs/mount-docs.ts";
import { preflightRoutes } from "./cors.ts";
import { type Route, routePattern } from "./route.ts";

const notFound = "no such route; GET /openapi.json lists all routes";

/**
 * Serves everything on the gateway's port. `count` counts a request without a credential and may refuse it. `consoleFolder` has the
 * console's files; without it there is no console.
 */
export const serveGateway = (
  declared: ReadonlyMap<Route, HttpRoute["serve"]>,
  probes: readonly HttpRoute[],
  count: (request: IncomingMessage) => Promise<void>,
  consoleFolder?: string,
) => {
  const routes = [...declared.keys()];
  const documents: HttpRoute[] = [];
  const addDocument = (pattern: string, render: (request: Request, response: Response) => void) =>
    documents.push({
      method: "GET",
      pattern,
      serve: async (request, response) => {
        await count(request);
        render(request as Request, response as Response);
      },
    });
  mountDocs({ get: addDocument }, routes);
  addDocument("/", (request, response) => {
    response.vary("accept");
    if (request.accepts(["json", "html"]) !== "html") throw new HeraldError("route-not-found", `path: ${notFound}`);
    response.redirect("/docs");
  });
  return serveRoutes(
    [
      ...[...declared].map(([route, serve]) => ({
        method: route.method.toUpperCase(),
        pattern: routePattern(route),
        serve,
      })),
      ...preflightRoutes(routes),
      ...probes,
      ...documents,
      ...(consoleFolder === undefined ? [] : consoleRoutes(consoleFolder, count)),
    ],
    { notFound, countUnserved: count },
  );
};
