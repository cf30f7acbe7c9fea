import type { RequestListener } from "node:http";
import express from "express";
import type { Logger } from "pino";
import { HeraldError } from "../herald-error.ts";
import { createListener } from "./create-listener.ts";
import type { ServeRoutes } from "./serve-routes.ts";

/** The express app of a JSON API, whose requests {@link createListener} serves. */
export const createHttpApp = (log: Logger, routes: ServeRoutes): RequestListener => {
  const app = express();
  app.set("etag", false);
  app.disable("x-powered-by");
  app.use(createListener(log, routes));
  // Express skips all middleware if it finds no path in the request target.
  const refuse = createListener(log, async () => {
    throw new HeraldError("malformed-request", "path: is not a valid request target");
  });
  return (request, response) =>
    (app as (...args: unknown[]) => void)(request, response, () => refuse(request, response));
};
