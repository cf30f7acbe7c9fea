import type { IncomingMessage, ServerResponse } from "node:http";
import type { ErrorCode } from "@herald/contracts";
import type { HttpRoute } from "@herald/kit";
import { z } from "zod";
import type { Access, CallerKind, CallerOf } from "../auth/caller.ts";
import type { RouteDeps } from "../deps.ts";
import type { Idempotent } from "../idempotency/idempotency.ts";
import { type ParamsOf, type PathParams, paramsOf } from "./path-params.ts";

export type Method = "get" | "post" | "put" | "patch" | "delete";

/** A response that a route declares for one status. Without a schema it has no body. */
export type ResponseSpec = {
  readonly description: string;
  readonly schema?: z.ZodType;
  /** Server-sent events, each of the schema, until either side closes the connection. */
  readonly stream?: true;
  /** Rows of the schema, as a stream with an end, in one of these media types. */
  readonly download?: readonly [string, ...string[]];
};

/** Writes a streamed body. Resolves when the stream has ended. */
export type StreamBody = (response: ServerResponse) => Promise<void>;

type ResponseSpecs = Readonly<Record<number, ResponseSpec>>;

type BodyOf<One extends ResponseSpec> = One extends { stream: true } | { download: readonly string[] }
  ? StreamBody
  : One extends { schema: infer Schema extends z.ZodType }
    ? z.input<Schema>
    : undefined;

/** A list: the header several times, as cookies need it. */
export type ReplyHeaders = Readonly<Record<string, string | string[]>>;

/** A reply that the route declares: a status, its body, and additional headers. */
export type RouteReply<All extends ResponseSpecs = ResponseSpecs> = {
  [Status in keyof All & number]: {
    readonly status: Status;
    readonly body: BodyOf<All[Status]>;
    readonly headers?: ReplyHeaders;
  };
}[keyof All & number];

/** An authenticated and parsed request. */
export type RouteRequest<Kind extends CallerKind, P extends PathParams, Q extends z.ZodType, B extends z.ZodType> = {
  readonly caller: CallerOf<Kind>;
  readonly params: { readonly [Name in keyof P]: z.output<P[Name]["schema"]> };
  readonly query: z.output<Q>;
  readonly body: z.output<B>;
  /** Performs the request once for its Idempotency-Key; without a key, every time. */
  readonly idempotent: Idempotent;
  /** Throws when the caller has lost its permission: for streams that outlive a token. */
  readonly recheck: () => Promise<unknown>;
  /** The client's address, as rate limits count it. */
  readonly address: string;
  /** The client's connection is encrypted. */
  readonly secure: boolean;
  /** The request, for handlers that read its headers or an `upload`. */
  readonly message: IncomingMessage;
};

/** The groups of the reference, in its order. */
export const tags = [
  "Notifications",
  "Devices",
  "Users",
  "Topics",
  "Templates",
  "Statistics",
  "Events",
  "Exports",
  "Administration",
] as const;
export type RouteTag = (typeof tags)[number];

/** The tag of routes under `/api/v1`, by the next part of their path. */
const tagsOfPaths: Readonly<Record<string, RouteTag>> = {
  devices: "Devices",
  imports: "Devices",
  identification: "Devices",
  metadata: "Devices",
  "webpush-key": "Devices",
  users: "Users",
  topics: "Topics",
  notifications: "Notifications",
  activities: "Notifications",
  templates: "Templates",
  stats: "Statistics",
  events: "Events",
  webhooks: "Events",
  exports: "Exports",
};

export type Declaration<
  Kind extends CallerKind,
  P extends PathParams,
  Q extends z.ZodType,
  B extends z.ZodType,
  A extends ResponseSpecs,
> = {
  /** Where the path is of another group's. */
  readonly tag?: RouteTag;
  readonly summary: string;
  readonly description?: string;
  readonly access: Access<Kind>;
  /** The path parameter that names what the route creates: a malformed one is a validation error. */
  readonly creates?: keyof P;
  readonly query?: Q;
  readonly body?: B;
  /** The maximum body size, if the default of 960 KiB is too small, or too large for clients without a credential. */
  readonly bodyLimitBytes?: number;
  /** The maximum number of values in the JSON of a body, if the default of 20,000 is too small. */
  readonly bodyMaxValues?: number;
  /** Instead of `body`: the media types of a body of any size that the handler reads itself. */
  readonly upload?: readonly string[];
  /** Its requests let those of other routes go first: they come in thousands, and no one waits for their answer. */
  readonly lowPriority?: true;
  readonly responses: A;
  /** Errors of this route. Errors of credential, parameters and body are added. */
  readonly errors?: readonly ErrorCode[];
};

/** A route: its declaration and its handler. The gateway makes the HTTP routes and the OpenAPI document from it. */
export type Route = Declaration<CallerKind, PathParams, z.ZodType, z.ZodType, ResponseSpecs> & {
  readonly method: Method;
  readonly path: string;
  readonly params: PathParams;
  readonly operationId: string;
  readonly tag: RouteTag;
  /** Browsers call it from other origins. */
  readonly cors: boolean;
  readonly handle: (
    deps: RouteDeps,
    request: RouteRequest<CallerKind, PathParams, z.ZodType, z.ZodType>,
  ) => Promise<RouteReply>;
};

/** The request of any route. */
export type HandledRequest = Parameters<Route["handle"]>[1];

/** The schema of a response whose `data` is of the given schema. */
export const dataOf = <Data extends z.ZodType>(data: Data) => z.object({ data });

/** A secret beside the `data` of a response: absent when the response is replayed, because only `data` is stored. */
export const shownOnce = (description: string) => z.string().optional().meta({ description });

/**
 * Declares a route: its operation id, its method and whole path, with `{name}` for parameters, and the rest. Its handler receives the
 * parsed request, and can reply only as declared.
 */
export const defineRoute = <
  Path extends `/${string}`,
  Kind extends CallerKind,
  const A extends ResponseSpecs,
  Q extends z.ZodType = z.ZodUndefined,
  B extends z.ZodType = z.ZodUndefined,
>(
  operationId: string,
  place: `${Method} ${Path}`,
  route: Declaration<Kind, ParamsOf<Path>, Q, B, A> & {
    handle: (deps: RouteDeps, request: RouteRequest<Kind, ParamsOf<Path>, Q, B>) => Promise<RouteReply<A>>;
  },
): Route => {
  const [method = "", path = ""] = place.split(" ");
  const isAdmin = path.startsWith("/admin/");
  return {
    tag: isAdmin ? "Administration" : tagsOfPaths[path.split("/")[3] ?? ""],
    ...route,
    method,
    path,
    params: paramsOf(path, route.creates as string | undefined),
    operationId,
    // Web apps are devices, so routes with a device credential or none allow every origin. Operators' routes allow only their own.
    cors:
      !isAdmin && route.access.by.some((kind: CallerKind) => kind === "device" || kind === "user" || kind === "client"),
  } as unknown as Route;
};

/** What the router asks of a route. */
export const httpRouteOf = ({ method, path, cors, lowPriority }: Route): Omit<HttpRoute, "serve"> => ({
  method: method.toUpperCase(),
  pattern: path.replaceAll(/\{(\w+)\}/g, ":$1"),
  cors,
  lowPriority,
});
