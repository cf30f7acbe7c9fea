import type { ServerResponse } from "node:http";
import type { ErrorCode } from "@herald/contracts";
import type { z } from "zod";
import type { Access, CallerKind, CallerOf } from "../auth/caller.ts";
import type { RouteDeps } from "../deps.ts";
import type { Idempotent } from "../idempotency/idempotency.ts";

export type Method = "get" | "post" | "put" | "patch" | "delete";

/** A parameter of the path. One that cannot exist is answered like one that does not, unless the route would make it. */
export type PathParam<Schema extends z.ZodType = z.ZodType> = {
  readonly schema: Schema;
  readonly otherwise: ErrorCode;
};

/** One status that a route answers with. Without a schema the answer has no body. */
export type Answer = {
  readonly description: string;
  readonly schema?: z.ZodType;
  /** Server-sent events, each of the schema, until one side ends it. */
  readonly stream?: true;
};

/** Writes a body that has no end; resolves when it has one. */
export type StreamBody = (response: ServerResponse) => Promise<void>;

type Params = Readonly<Record<string, PathParam>>;
type Answers = Readonly<Record<number, Answer>>;

type BodyOf<One extends Answer> = One extends { stream: true }
  ? StreamBody
  : One extends { schema: infer Schema extends z.ZodType }
    ? z.input<Schema>
    : undefined;

/** An answer that was declared: its status, the body of that status, and headers beside the usual ones. */
export type Reply<All extends Answers = Answers> = {
  [Status in keyof All & number]: {
    readonly status: Status;
    readonly body: BodyOf<All[Status]>;
    readonly headers?: Readonly<Record<string, string>>;
  };
}[keyof All & number];

/** A request that was authenticated and parsed. */
export type RouteRequest<Kind extends CallerKind, P extends Params, Q extends z.ZodType, B extends z.ZodType> = {
  readonly caller: CallerOf<Kind>;
  readonly params: { readonly [Name in keyof P]: z.output<P[Name]["schema"]> };
  readonly query: z.output<Q>;
  readonly body: z.output<B>;
  /** Carries the request out once for its Idempotency-Key; without one it is always another. */
  readonly idempotent: Idempotent;
  /** Where the reader of a stream stopped. */
  readonly lastEventId: string | undefined;
  /** Throws when the caller may not do this any more: for answers that take longer than a token may live. */
  readonly recheck: () => Promise<unknown>;
  /** Whom limits by address count. */
  readonly address: string;
  /** The path and the parameters behind it, as they were sent. */
  readonly path: string;
  readonly search: URLSearchParams;
};

type Declaration<
  Kind extends CallerKind,
  P extends Params,
  Q extends z.ZodType,
  B extends z.ZodType,
  A extends Answers,
> = {
  readonly method: Method;
  /** Complete, with `{name}` for parameters: `/api/v1/devices/{id}`. */
  readonly path: `/${string}`;
  readonly operationId: string;
  readonly tag: "Devices" | "Users" | "Topics" | "Notifications" | "Statistics" | "Events" | "Administration";
  readonly summary: string;
  readonly description?: string;
  readonly access: Access<Kind>;
  readonly params?: P;
  readonly query?: Q;
  readonly body?: B;
  /** The largest body, where the 960 KiB of other routes would let anyone without a credential cost much, or are too few. */
  readonly bodyLimitBytes?: number;
  readonly answers: A;
  /** Errors of this route; those that follow from credential, parameters and body are added. */
  readonly errors?: readonly ErrorCode[];
};

/** What a route is: how it is declared, and what it does. Express and the OpenAPI document are both made from it. */
export type Route = Omit<Declaration<CallerKind, Params, z.ZodType, z.ZodType, Answers>, "description"> & {
  readonly description?: string;
  /** Browsers call it from other origins. */
  readonly cors: boolean;
  readonly handle: (deps: RouteDeps, request: RouteRequest<CallerKind, Params, z.ZodType, z.ZodType>) => Promise<Reply>;
};

/** Declares a route. The handler gets what the declaration parses, and can answer only what it declares. */
export const defineRoute = <
  Kind extends CallerKind,
  const A extends Answers,
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
    // Devices and apps are pages too: what takes a device credential, or none, answers every origin.
    cors: route.access.by.some((kind: CallerKind) => kind === "device" || kind === "client"),
  }) as unknown as Route;

/** The path as express writes it: `/api/v1/devices/:id`. */
export const routePattern = ({ path }: Route): string => path.replaceAll(/\{(\w+)\}/g, ":$1");
