import type { IncomingMessage } from "node:http";
import { HeraldError, type HttpRoute, meter, serveRoutes } from "@herald/kit";
import type { Request, Response } from "express";
import { consoleRoutes } from "./serve-console.ts";
import { docsRoutes } from "./serve-docs.ts";

const notFound = "route not found; GET /openapi.json lists all routes";

/** Leads browsers to the documentation. */
const frontPage = (request: Request, response: Response): void => {
  response.vary("accept");
  if (request.accepts(["json", "html"]) !== "html") throw new HeraldError("route-not-found", `path: ${notFound}`);
  response.redirect("/docs");
};

/**
 * Serves everything on the gateway's port. `count` counts a request without a credential and may refuse it. `folders` have the files of the
 * documentation and the console; without its folder there is no console.
 */
export const serveGateway = (
  declared: readonly HttpRoute[],
  probes: readonly HttpRoute[],
  count: (request: IncomingMessage) => Promise<void>,
  folders: { readonly docs: string; readonly console?: string | undefined },
) => {
  const front: HttpRoute = {
    method: "GET",
    pattern: "/",
    serve: async (request, response) => {
      await count(request);
      frontPage(request as Request, response as Response);
    },
  };
  return serveRoutes(
    [
      ...declared,
      ...probes,
      front,
      ...docsRoutes(folders.docs, count),
      ...(folders.console === undefined ? [] : consoleRoutes(folders.console, count)),
    ],
    { notFound, countUnserved: count },
  );
};

type Load = { readonly now: () => number; readonly limit: number };

/** Exports connections and memory in use, with their limits. Returns a function that unregisters the gauges. */
export const registerLoadMetrics = (connections: Load, memoryBytes: Load): (() => void) => {
  const gauge = (name: string, description: string, read: () => number) => {
    const made = meter().createObservableGauge(name, { description });
    const observe: Parameters<typeof made.addCallback>[0] = (result) => result.observe(read());
    made.addCallback(observe);
    return () => made.removeCallback(observe);
  };
  const inMemory = "Bytes of bodies being received and of responses that clients have not read";
  const removals = [
    gauge("herald.http.connections", "Open connections", connections.now),
    gauge("herald.http.connections_limit", "The limit of connections", () => connections.limit),
    gauge("herald.http.memory_bytes", inMemory, memoryBytes.now),
    gauge("herald.http.memory_limit_bytes", "The limit of memory_bytes", () => memoryBytes.limit),
  ];
  return () => {
    for (const remove of removals) remove();
  };
};
