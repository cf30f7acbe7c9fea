import type { IncomingMessage } from "node:http";
import { HeraldError, type HttpRoute, meter, serveRoutes } from "@herald/kit";
import type { Request, Response } from "express";
import { consoleRoutes } from "./serve-console.ts";

const notFound = "route not found; GET /openapi.json lists all routes";

/** A page that everyone may read. */
export type PublicPage = { readonly path: string; readonly render: (request: Request, response: Response) => void };

const frontPage: PublicPage = {
  path: "/",
  render: (request, response) => {
    response.vary("accept");
    if (request.accepts(["json", "html"]) !== "html") throw new HeraldError("route-not-found", `path: ${notFound}`);
    response.redirect("/docs");
  },
};

/**
 * Serves everything on the gateway's port. `count` counts a request without a credential and may refuse it. `consoleFolder` has the
 * console's files; without it there is no console.
 */
export const serveGateway = (
  declared: readonly HttpRoute[],
  pages: readonly PublicPage[],
  probes: readonly HttpRoute[],
  count: (request: IncomingMessage) => Promise<void>,
  consoleFolder?: string,
) => {
  const servePage = ({ path, render }: PublicPage): HttpRoute => ({
    method: "GET",
    pattern: path,
    serve: async (request, response) => {
      await count(request);
      render(request as Request, response as Response);
    },
  });
  return serveRoutes(
    [
      ...declared,
      ...probes,
      ...[...pages, frontPage].map(servePage),
      ...(consoleFolder === undefined ? [] : consoleRoutes(consoleFolder, count)),
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
