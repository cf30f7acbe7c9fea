import type { IncomingMessage, ServerResponse } from "node:http";
import type { ErrorCode } from "@herald/contracts";
import {
  bareSchemas,
  clientAddress,
  createReadBody,
  defaultBodyLimitBytes,
  type Fault,
  HeraldError,
  type HttpRoute,
  knownFields,
  type MemoryLimit,
  parseBody,
  parseQuery,
  parseSearch,
  pointerTo,
  type ReserveMemory,
} from "@herald/kit";
import { z } from "zod";
import { type Caller, refuseForeign } from "../auth/caller.ts";
import { credentialsOf, isSecure } from "../auth/request-credentials.ts";
import type { RouteDeps } from "../deps.ts";
import type { Answered, Work } from "../idempotency/idempotency.ts";
import { fieldsOf, type PathParams } from "./path-params.ts";
import { recordChange } from "./record-change.ts";
import { isPage, pageLinks } from "./reply.ts";
import {
  type HandledRequest,
  httpRouteOf,
  type ReplyHeaders,
  type Route,
  type RouteReply,
  type StreamBody,
} from "./route.ts";

const noQuery = z.strictObject({});

/** Visible ASCII, as in the draft's examples; long enough for any id with a prefix. */
export const IdempotencyKey = z
  .string()
  .regex(/^[\x21-\x7e]{1,255}$/, "must be 1 to 255 visible ASCII characters")
  .meta({
    description:
      "Repeating the request with the same key and body returns the first answer. Kept for 24 hours; for at most 10 minutes when the project uses more than its share of the storage for keys",
  });

type Sent = Readonly<Record<string, unknown>>;

/** Throws `error` with the first problem of the value. */
const parseOne = (name: string, { schema, error }: { schema: z.ZodType; error: ErrorCode }, sent: unknown): unknown => {
  const result = schema.safeParse(sent);
  if (result.success) return result.data;
  throw new HeraldError(error, `${name}: ${result.error.issues[0]?.message ?? "is not accepted"}`);
};

const parsePath = (params: PathParams, sent: Sent): Record<string, unknown> =>
  Object.fromEntries(Object.entries(params).map(([name, param]) => [name, parseOne(name, param, sent[name])]));

const idempotencyKey = (request: IncomingMessage): string | undefined => {
  const sent = request.headers["idempotency-key"];
  if (sent === undefined || request.method !== "POST") return undefined;
  return parseOne("Idempotency-Key", { schema: IdempotencyKey, error: "validation-failed" }, sent) as string;
};

/** Some clients send `{}` or `null` for an empty body. */
const isEmpty = (body: unknown): boolean =>
  body === undefined || body === null || (typeof body === "object" && Object.keys(body).length === 0);

/** Reports the problems of query and body together. */
const parseBoth = (route: Route, search: URLSearchParams, sent: unknown): { query: unknown; body: unknown } => {
  const problems: Fault[] = [];
  const attempt = <Value>(parse: () => Value): Value | undefined => {
    try {
      return parse();
    } catch (error) {
      if (!(error instanceof HeraldError) || error.code !== "validation-failed") throw error;
      problems.push(...error.faults);
      return undefined;
    }
  };
  // Most requests have no query, and their route takes none.
  const parsed = route.query || search.size > 0 ? attempt(() => parseQuery(route.query ?? noQuery, search)) : {};
  const { body: schema } = route;
  if (schema === undefined && !isEmpty(sent))
    problems.push({ name: "body", detail: "this route takes no body", code: "unknown-field", pointer: "#" });
  const body = schema === undefined ? undefined : attempt(() => parseBody(schema, sent));
  if (problems.length > 0) throw new HeraldError("validation-failed", problems);
  return { query: parsed, body };
};

/** The fields of a route's body, without names that parameters have too. */
const bodyFieldsOf = ({ body, params, query }: Route): ReadonlySet<string> => {
  const parameters = new Set([...Object.keys(params), ...knownFields(query ? [query] : [])]);
  return new Set(knownFields(body ? bareSchemas(body) : []).filter((field) => !parameters.has(field)));
};

/** Adds the pointer to each fault that names a field of the body. */
const locateFaults = (error: unknown, bodyFields: ReadonlySet<string>): void => {
  if (!(error instanceof HeraldError)) return;
  error.faults = error.faults.map((fault) => {
    const path = fault.name.split(".");
    if (fault.pointer !== undefined || !bodyFields.has(path[0] ?? "")) return fault;
    return { ...fault, pointer: pointerTo(path) };
  });
};

const setHeaders = (response: ServerResponse, headers: ReplyHeaders = {}): void => {
  for (const name in headers) response.setHeader(name, headers[name] ?? "");
};

/** `x-accel-buffering` tells proxies not to buffer the stream. */
const streamHeaders = { "content-type": "text/event-stream; charset=utf-8", "x-accel-buffering": "no" };

/** A smaller response costs no more than its connection. Larger ones count until the client has read them. */
const smallResponseBytes = 16_384;

const startResponse = (response: ServerResponse, status: number, headers?: ReplyHeaders): void => {
  response.statusCode = status;
  // Responses contain personal data: caches must not store them.
  response.setHeader("cache-control", "no-store");
  setHeaders(response, headers);
};

const send = async (
  response: ServerResponse,
  { status, body, headers }: RouteReply,
  reserve: ReserveMemory,
): Promise<void> => {
  if (typeof body === "function") {
    startResponse(response, status, { ...streamHeaders, ...headers });
    await (body as StreamBody)(response);
    return;
  }
  if (body === undefined) {
    startResponse(response, status, headers);
    response.end();
    return;
  }
  // A shell begins its prompt after it, on a line of its own.
  const text = Buffer.from(`${JSON.stringify(body)}\n`);
  if (text.length > smallResponseBytes) reserve(text.length);
  startResponse(response, status, headers);
  response.setHeader("content-type", "application/json; charset=utf-8");
  response.end(text);
};

/** A route's streamed response, to answer HEAD; undefined if it has none. */
const streamOf = (route: Route): { readonly status: number; readonly headers: ReplyHeaders } | undefined => {
  for (const [status, { stream, download }] of Object.entries(route.responses)) {
    if (stream) return { status: Number(status), headers: streamHeaders };
    if (download) return { status: Number(status), headers: { ...streamHeaders, "content-type": download[0] } };
  }
  return undefined;
};

/** The owner of the caller's Idempotency-Keys. */
const ownerOf = (caller: Caller): string => {
  if (caller.kind === "operator") return caller.operator.id;
  return "projectId" in caller ? caller.projectId : caller.kind;
};

/** Performs a request without an Idempotency-Key, as often as it comes. */
const performUnkeyed = async <Reply extends Answered, Id extends string>(
  { newId, perform, performFirst }: Work<Reply, Id>,
  at: Date,
): Promise<Reply> => {
  // Only a claimed key makes it resolve to undefined.
  if (performFirst) return (await performFirst({ at })) as Reply;
  // Work without `newId` needs no id.
  return perform({ id: newId?.(at) ?? ("" as Id), at });
};

type Edge = {
  /** The number of trusted proxies. */
  readonly proxies: number;
  readonly memory: MemoryLimit;
  /** The GET route for the state that this route changes, for audit rows. */
  readonly reader?: Route | undefined;
  /** Refuses operators: only project tokens, devices and apps use this port. */
  readonly withoutOperators?: boolean;
};

/** The project that a request under `/admin/v1` is about. It decides what an operator may do, so it is read before the rest. */
const targetOf = ({ path, access }: Route, params: Sent, query: string): string | undefined => {
  if (path.startsWith("/admin/v1/projects/{id}")) return String(params.id);
  // What is wrong with a query is said only to a known caller.
  return access.grant === undefined ? undefined : (new URLSearchParams(query).get("project_id") ?? undefined);
};

/** The HTTP route of a route. Counts requests without a credential by address before it parses query or body. */
export const serveRoute = (route: Route, deps: RouteDeps, edge: Edge): HttpRoute => ({
  ...httpRouteOf(route),
  serve: serverOf(route, deps, edge),
});

const serverOf = (route: Route, deps: RouteDeps, edge: Edge): HttpRoute["serve"] => {
  const { proxies, memory, reader, withoutOperators = false } = edge;
  const readBody = createReadBody(route.bodyLimitBytes ?? defaultBodyLimitBytes, route.bodyMaxValues);
  const stream = streamOf(route);
  const bodyFields = bodyFieldsOf(route);
  const forClients = route.access.by.some((kind) => kind === "device" || kind === "user");
  return async (request, response, { params: sentParams, path, query: sentQuery }) => {
    const address = clientAddress(request, proxies);
    const reserve = memory.forRequest(request, response, address);
    const secure = isSecure(request, proxies);
    const target = targetOf(route, sentParams, sentQuery);
    const credentials = { ...credentialsOf(request, secure), withoutOperators, target };
    const authenticate = () => deps.authenticate(route.access, credentials, address);
    const caller = await authenticate();
    setHeaders(response, await deps.limits.countRequest(caller));
    if (route.access.countsAsSignIn && caller.kind === "operator") await deps.limits.countSignIn(caller.operator.id);

    const serve = async () => {
      const params = parsePath(route.params, sentParams);
      const search = parseSearch(sentQuery);
      const sent = route.upload ? undefined : await readBody(request, reserve);
      const { query, body } = parseBoth(route, search, sent);
      // A stream is long or endless, so HEAD gets only its headers and takes no slot.
      if (stream !== undefined && request.method === "HEAD") {
        startResponse(response, stream.status, stream.headers);
        response.end();
        return;
      }
      const key = idempotencyKey(request);
      const handling: HandledRequest = {
        caller,
        params,
        query,
        body,
        idempotent: (work) =>
          key === undefined
            ? performUnkeyed(work, deps.now())
            : deps.idempotency({ key, owner: ownerOf(caller), route: `POST ${path}`, body: sent }, work),
        recheck: authenticate,
        message: request,
        address,
        secure,
      };
      if (forClients) refuseForeign(caller, fieldsOf(route.params, params));
      if ("operator" in caller && caller.operator) await recordChange(caller.operator, route, reader, handling, deps);
      const reply = await route.handle(deps, handling).catch((error: unknown) => {
        locateFaults(error, bodyFields);
        throw error;
      });
      if (route.method === "get" && isPage(reply.body))
        response.setHeader("link", pageLinks({ path, search }, reply.body));
      await send(response, reply, reserve);
    };

    if (route.access.signed) return deps.limits.runUnverified(address, serve);
    if (caller.kind === "client") await deps.limits.countAnonymous(address);
    await serve();
  };
};
