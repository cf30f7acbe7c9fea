import type { IncomingMessage, ServerResponse } from "node:http";
import {
  clientAddress,
  createReadBody,
  defaultBodyLimitBytes,
  HeraldError,
  parseBody,
  parseQuery,
  queryOf,
} from "@herald/kit";
import { z } from "zod";
import type { Gateway } from "../gateway.ts";
import type { PathParam, Reply, Route, StreamBody } from "./route.ts";

const noQuery = z.strictObject({});

/** Visible ASCII, as the draft's examples are; long enough for any id with a prefix. */
export const IdempotencyKey = z
  .string()
  .regex(/^[\x21-\x7e]{1,255}$/, "must be 1 to 255 visible ASCII characters")
  .meta({ description: "Makes a repeat of the request harmless: same key and body, same answer; kept for 24 hours" });

type Sent = Readonly<Record<string, unknown>>;

const parsePath = (params: Readonly<Record<string, PathParam>>, sent: Sent): Record<string, unknown> => {
  const parsed = Object.entries(params).map(([name, { schema, otherwise }]) => {
    const result = schema.safeParse(sent[name]);
    if (result.success) return [name, result.data];
    throw new HeraldError(otherwise, `${name}: ${result.error.issues[0]?.message ?? "is not accepted"}`);
  });
  return Object.fromEntries(parsed);
};

const idempotencyKey = (request: IncomingMessage): string | undefined => {
  const sent = request.headers["idempotency-key"];
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
const parseBoth = (route: Route, query: Sent, sent: unknown): { query: unknown; body: unknown } => {
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
  const parsed = attempt(() => parseQuery(route.query ?? noQuery, { query }));
  const { body: schema } = route;
  if (schema === undefined && !isEmpty(sent)) problems.push("body: this route takes none");
  const body = schema === undefined ? undefined : attempt(() => parseBody(schema, sent));
  if (problems.length > 0) throw new HeraldError("validation-failed", problems);
  return { query: parsed, body };
};

type Headers = Readonly<Record<string, string>>;

const setHeaders = (response: ServerResponse, headers: Headers = {}): void => {
  for (const name in headers) response.setHeader(name, headers[name] ?? "");
};

/** Proxies are told not to wait for the end of it. */
const streamHeaders = { "content-type": "text/event-stream; charset=utf-8", "x-accel-buffering": "no" };

const send = async (response: ServerResponse, { status, body, headers }: Reply): Promise<void> => {
  response.statusCode = status;
  // Answers name devices and people: no cache on the way keeps them.
  response.setHeader("cache-control", "no-store");
  setHeaders(response, headers);
  if (typeof body === "function") {
    setHeaders(response, streamHeaders);
    // A HEAD has no body, so it would never see the end of this one.
    if (response.req.method === "HEAD") response.end();
    else await (body as StreamBody)(response);
  } else if (body === undefined) response.end();
  else {
    response.setHeader("content-type", "application/json; charset=utf-8");
    response.end(JSON.stringify(body));
  }
};

/** What a request asks for, as the router found it; percent-encoding is undone in `params`. */
export type Asked = { readonly params: Sent; readonly url: string };

/** Serves one route: authenticate, parse, handle, reply. Throws what is to be answered. */
export type ServeRoute = (request: IncomingMessage, response: ServerResponse, asked: Asked) => Promise<void>;

/** `proxies` is how many stand in front and are believed. */
export const serveRoute = (route: Route, gateway: Gateway, proxies: number): ServeRoute => {
  const readBody = createReadBody(route.bodyLimitBytes ?? defaultBodyLimitBytes);
  return async (request, response, asked) => {
    const address = clientAddress(request, proxies);
    const authenticate = () => gateway.authenticate(route.access, request.headers.authorization, address);
    const caller = await authenticate();
    setHeaders(response, await gateway.limits.request(caller));
    // Only now: the body of somebody who may not call this is never read.
    const sent = await readBody(request, response);
    const params = parsePath(route.params ?? {}, asked.params);
    const split = asked.url.indexOf("?");
    const search = new URLSearchParams(split < 0 ? "" : asked.url.slice(split));
    const { query, body } = parseBoth(route, split < 0 ? {} : queryOf(search), sent);
    const path = split < 0 ? asked.url : asked.url.slice(0, split);
    const key = idempotencyKey(request);
    const owner = "projectId" in caller ? caller.projectId : caller.kind;
    const lastEventId = request.headers["last-event-id"];
    const reply = await route.handle(gateway, {
      caller,
      params,
      query,
      body,
      once: (work) => gateway.once({ key, owner, route: `POST ${path}`, body: sent }, work),
      lastEventId: lastEventId === undefined ? undefined : String(lastEventId),
      recheck: authenticate,
      address,
      path,
      search,
    });
    await send(response, reply);
  };
};
