import { defaultBodyLimitBytes, HeraldError, parseBody, parseQuery, readBody } from "@herald/kit";
import type { Request, Response, Router } from "express";
import { z } from "zod";
import type { Gateway } from "../gateway.ts";
import type { PathParam, Reply, Route, StreamBody } from "./route.ts";

const noQuery = z.strictObject({});

/** Visible ASCII, as the draft's examples are; long enough for any id with a prefix. */
export const IdempotencyKey = z
  .string()
  .regex(/^[\x21-\x7e]{1,255}$/, "must be 1 to 255 visible ASCII characters")
  .meta({ description: "Makes a repeat of the request harmless: same key and body, same answer; kept for 24 hours" });

const parsePath = (params: Readonly<Record<string, PathParam>>, request: Request): Record<string, unknown> => {
  const parsed = Object.entries(params).map(([name, { schema, otherwise }]) => {
    const result = schema.safeParse(request.params[name]);
    if (result.success) return [name, result.data];
    throw new HeraldError(otherwise, `${name}: ${result.error.issues[0]?.message ?? "is not accepted"}`);
  });
  return Object.fromEntries(parsed);
};

const idempotencyKey = (request: Request): string | undefined => {
  const sent = request.get("idempotency-key");
  if (sent === undefined || request.method !== "POST") return undefined;
  const parsed = IdempotencyKey.safeParse(sent);
  if (parsed.success) return parsed.data;
  throw new HeraldError(
    "validation-failed",
    `Idempotency-Key: ${parsed.error.issues[0]?.message ?? "is not accepted"}`,
  );
};

/** Some clients send `{}` or `null` where they have nothing to say. */
const isEmpty = (body: unknown): boolean =>
  body === undefined || body === null || (typeof body === "object" && Object.keys(body).length === 0);

/** The problems of the query and those of the body are said at once. */
const parseBoth = (route: Route, request: Request): { query: unknown; body: unknown } => {
  const problems: string[] = [];
  const attempt = <Value>(parse: () => Value): Value | undefined => {
    try {
      return parse();
    } catch (error) {
      if (!(error instanceof HeraldError) || error.code !== "validation-failed") throw error;
      problems.push(...error.messages);
      return undefined;
    }
  };
  const query = attempt(() => parseQuery(route.query ?? noQuery, request));
  const { body: schema } = route;
  if (schema === undefined && !isEmpty(request.body)) problems.push("body: this route takes none");
  const body = schema === undefined ? undefined : attempt(() => parseBody(schema, request.body));
  if (problems.length > 0) throw new HeraldError("validation-failed", problems);
  return { query, body };
};

/** Proxies are told not to wait for the end of it. */
const streamHeaders = { "content-type": "text/event-stream; charset=utf-8", "x-accel-buffering": "no" };

const send = async (response: Response, { status, body, headers }: Reply): Promise<void> => {
  // Answers name devices and people: no cache on the way keeps them.
  response.status(status).set({ "cache-control": "no-store", ...headers });
  if (typeof body === "function") {
    response.set(streamHeaders);
    // A HEAD has no body, so it would never see the end of this one.
    if (response.req.method === "HEAD") response.end();
    else await (body as StreamBody)(response);
  } else if (body === undefined) response.end();
  else response.json(body);
};

/** Adds the routes to an express router: authenticate, parse, handle, reply. Errors go on to the app's error handler. */
export const mountRoutes = (router: Router, routes: readonly Route[], gateway: Gateway): void => {
  const isLiteral = ({ path }: Route) => !path.includes("{");
  const literals: ReadonlySet<string> = new Set(routes.filter(isLiteral).map(({ path }) => path));
  for (const route of routes) {
    const read = readBody(route.bodyLimitBytes ?? defaultBodyLimitBytes);
    const path = route.path.replaceAll(/\{(\w+)\}/g, ":$1");
    router[route.method](path, async (request, response, next) => {
      // `GET /dead-letters/replay` does not ask for the dead letter "replay": it is a 405, which the app answers.
      if (!isLiteral(route) && literals.has(request.path)) return next();
      const address = request.ip ?? "";
      const authenticate = () => gateway.authenticate(route.access, request.get("authorization"), address);
      const caller = await authenticate();
      response.set(await gateway.limits.request(caller));
      // Only now: the body of somebody who may not call this is never read.
      await read(request, response);
      const params = parsePath(route.params ?? {}, request);
      const { query, body } = parseBoth(route, request);
      const url = request.originalUrl;
      const split = url.indexOf("?");
      const reply = await route.handle(gateway, {
        caller,
        params,
        query,
        body,
        sent: request.body,
        idempotencyKey: idempotencyKey(request),
        lastEventId: request.get("last-event-id"),
        recheck: authenticate,
        address,
        path: split < 0 ? url : url.slice(0, split),
        search: new URLSearchParams(split < 0 ? "" : url.slice(split)),
      });
      await send(response, reply);
    });
  }
};
