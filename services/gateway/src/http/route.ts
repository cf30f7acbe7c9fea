import type { IncomingMessage, ServerResponse } from "node:http";
import type { ErrorCode } from "@herald/contracts";
import type { z } from "zod";
import type { Access, CallerKind, CallerOf } from "../auth/caller.ts";
import type { RouteDeps } from "../deps.ts";
import type { Idempotent } from "../idempotency/idempotency.ts";

export type Method = "get" | "post" | "put" | "patch" | "delete";

/** A path parameter. A value that the schema refuses is answered with `error`, so an impossible id is a 404 like an unknown one. */
export type PathParam<Schema extends z.ZodType = z.ZodType> = {
  readonly schema: Schema;
  readonly error: ErrorCode;
};

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

type Params = Readonly<Record<string, PathParam>>;
type ResponseSpecs = Readonly<Record<number, ResponseSpec>>;

type BodyOf<One extends ResponseSpec> = One extends { stream: true } | { download: readonly string[] }
  ? StreamBody
  : One extends { schema: infer Schema extends z.ZodType }
    ? z.input<Schema>
    : undefined;

/** A reply that the route declared: a status, its body, and headers beside the usual ones. */
export type Reply<All extends ResponseSpecs = ResponseSpecs> = {
  [Status in keyof All & number]: {
    readonly status: Status;
    readonly body: BodyOf<All[Status]>;
    readonly headers?: Readonly<Record<string, string>>;
  };
}[keyof All & number];

/** An authenticated and parsed request. */
export type RouteRequest<Kind extends CallerKind, P extends Params, Q extends z.ZodType, B extends z.ZodType> = {
  readonly caller: CallerOf<Kind>;
  readonly params: { readonly [Name in keyof P]: z.output<P[Name]["schema"]> };
  readonly query: z.output<Q>;
  readonly body: z.output<B>;
  /** Performs the request once for its Idempotency-Key; without a key, every time. */
  readonly idempotent: Idempotent;
  /** The last event that the client of a stream received. */
  readonly lastEventId: string | undefined;
  /** What the client accepts: media types, and codings. */
  readonly accept: string | undefined;
  readonly acceptEncoding: string | undefined;
  /** Throws when the caller is no longer allowed to do this: for streams that outlive a token. */
  readonly recheck: () => Promise<unknown>;
  /** The client's address, as rate limits count it. */
  readonly address: string;
  /** The client's connection is encrypted. */
  readonly secure: boolean;
  /** The request, for the handler of an `upload`. */
  readonly message: IncomingMessage;
  /** The path and the query, as sent. */
  readonly path: string;
  readonly search: URLSearchParams;
};

type Declaration<
  Kind extends CallerKind,
  P extends Params,
  Q extends z.ZodType,
  B extends z.ZodType,
  A extends ResponseSpecs,
> = {
  readonly method: Method;
  /** The whole path, with `{name}` for parameters: `/api/v1/devices/{id}`. */
  readonly path: `/${string}`;
  readonly operationId: string;
  readonly tag:
    | "Devices"
    | "Users"
    | "Topics"
    | "Notifications"
    | "Statistics"
    | "Events"
    | "Exports"
    | "Administration";
  readonly summary: string;
  readonly description?: string;
  readonly access: Access<Kind>;
  readonly params?: P;
  readonly query?: Q;
  readonly body?: B;
  /** The largest body, where the 960 KiB of other routes are too few, or too many for clients without a credential. */
  readonly bodyLimitBytes?: number;
  /** The most values in the JSON of a body, where the 20,000 of other routes are too few. */
  readonly bodyMaxValues?: number;
  /** The media types of a body that the handler reads itself, of any size; instead of `body`. */
  readonly upload?: readonly string[];
  readonly responses: A;
  /** Errors of this route. Those of credential, parameters and body are added. */
  readonly errors?: readonly ErrorCode[];
};

/** A route: its declaration and its handler. The HTTP routes and the OpenAPI document are both made from it. */
export type Route = Omit<Declaration<CallerKind, Params, z.ZodType, z.ZodType, ResponseSpecs>, "description"> & {
  readonly description?: string;
  /** Browsers call it from other origins. */
  readonly cors: boolean;
  readonly handle: (deps: RouteDeps, request: RouteRequest<CallerKind, Params, z.ZodType, z.ZodType>) => Promise<Reply>;
};

/** The request of any route. */
export type HandledRequest = Parameters<Route["handle"]>[1];

/** Declares a route. Its handler receives what the declaration parses, and can reply only with what it declares. */
export const defineRoute = <
  Kind extends CallerKind,
  const A extends ResponseSpecs,
  P extends Params = Record<never, never>,
  Q extends z.ZodType = z.ZodUndefined,
  B extends z.ZodType = z.ZodUndefined,
>(
  route: Declaration<Kind, P, Q, B, A> & {
    handle: (deps: RouteDeps, request: RouteRequest<Kind, P, Q, B>) => Promise<Reply<A>>;
  },
): Route =>
  ({
    ...route,
    // Web apps are devices: routes that take a device credential, or none, allow every origin. Operators' routes allow their own.
    cors:
      !route.path.startsWith("/admin/") &&
      route.access.by.some((kind: CallerKind) => kind === "device" || kind === "client"),
  }) as unknown as Route;

/** The path in Express syntax: `/api/v1/devices/:id`. */
export const routePattern = ({ path }: Route): string => path.replaceAll(/\{(\w+)\}/g, ":$1");
