import { AsyncLocalStorage } from "node:async_hooks";
import type { IncomingMessage, ServerResponse } from "node:http";
import { HeraldError, type HttpRoute, meter, serveRoutes } from "@herald/kit";
import type { Request, Response } from "express";
import { type Route, routePattern } from "./route.ts";
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
  declared: ReadonlyMap<Route, HttpRoute["serve"]>,
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
      ...[...declared].map(([route, serve]) => ({
        method: route.method.toUpperCase(),
        pattern: routePattern(route),
        serve,
      })),
      ...preflightRoutes([...declared.keys()]),
      ...probes,
      ...[...pages, frontPage].map(servePage),
      ...(consoleFolder === undefined ? [] : consoleRoutes(consoleFolder, count)),
    ],
    { notFound, countUnserved: count },
  );
};

/** How long a browser may cache a preflight: two hours is Chromium's maximum. */
const preflightSeconds = 7_200;

const exposed = "X-Request-Id, Retry-After, RateLimit, RateLimit-Policy";

/** Tests whether a URL is of one of the routes, whatever its query. */
const urlsOf = (routes: readonly Route[]): RegExp => {
  const paths = routes.map(({ path }) => path.replaceAll(/\{\w+\}/g, "[^/?]+"));
  return new RegExp(`^(?:${[...new Set(paths)].join("|")})/?(?:\\?|$)`);
};

/**
 * Middleware that lets pages of any origin read the responses of routes for browsers, problems included. `*` is safe because there are
 * no cookies.
 */
export const allowBrowsers = (routes: readonly Route[]) => {
  const open = urlsOf(routes.filter(({ cors }) => cors));
  return ({ url = "" }: IncomingMessage, response: ServerResponse, next: () => void): void => {
    if (open.test(url)) {
      response.setHeader("access-control-allow-origin", "*");
      response.setHeader("access-control-expose-headers", exposed);
    }
    next();
  };
};

/** About four milliseconds of work. */
const perTurn = 32;

/**
 * Middleware that serves requests of low priority in turns of the event loop, a few in each and in their order. After a broadcast hundreds of
 * receipts arrive at the same moment, and a send needs several turns: it would wait behind all of them in each.
 */
export const takeTurns = (routes: readonly Route[]) => {
  const late = urlsOf(routes.filter(({ lowPriority }) => lowPriority));
  const waiting: { readonly request: IncomingMessage; readonly next: () => void }[] = [];
  const serveSome = (): void => {
    // The clients of the others have disconnected.
    for (const { request, next } of waiting.splice(0, perTurn)) if (!request.destroyed) next();
    if (waiting.length > 0) setImmediate(serveSome);
  };
  return (request: IncomingMessage, _response: ServerResponse, next: () => void): void => {
    if (!late.test(request.url ?? "")) {
      next();
      return;
    }
    if (waiting.length === 0) setImmediate(serveSome);
    // With the request's own id and span: the turn is one of all.
    waiting.push({ request, next: AsyncLocalStorage.bind(next) });
  };
};

/** Answers preflights. They are not rate limited: a refusal would cost as much, and reporting an open waits for them. */
const preflightRoutes = (routes: readonly Route[]): HttpRoute[] => {
  const open = routes.filter(({ cors }) => cors);
  return [...Map.groupBy(open, routePattern)].map(([pattern, own]) => {
    const headers = {
      "access-control-allow-methods": own.map(({ method }) => method.toUpperCase()).join(", "),
      "access-control-allow-headers": "Authorization, Content-Type, X-Request-Id, traceparent, tracestate",
      "access-control-max-age": String(preflightSeconds),
    };
    return {
      method: "OPTIONS",
      pattern,
      serve: async (_request, response, { allow }) => void response.writeHead(204, { allow, ...headers }).end(),
    };
  });
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
