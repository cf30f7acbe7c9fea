import type { ProjectId, RequestContract } from "@herald/contracts";
import { z } from "zod";
import type { CallerKind, CallerOf } from "../auth/caller.ts";
import type { RouteDeps } from "../deps.ts";
import { fieldsOf, type ParamsOf, type PathFieldsOf } from "./path-params.ts";
import { keysetRequest, noContent, pageReply, pageRequest } from "./reply.ts";
import {
  type Declaration,
  dataOf,
  defineRoute,
  type HandledRequest,
  type Method,
  type Route,
  type RouteRequest,
} from "./route.ts";

type NoFields = Record<never, never>;
type NewIds = Readonly<Record<string, (at: Date) => string>>;

/** The fields of a request that the route need not add. */
type Given<Path extends string, Kind extends CallerKind, Query extends z.ZodObject> =
  | keyof PathFieldsOf<Path>
  | ([CallerOf<Kind>] extends [{ projectId: ProjectId }] ? "projectId" : never)
  | keyof Query["shape"]
  | (Query["shape"] extends { per_page: unknown } ? "page" : never);

type RowOf<Answer> = Answer extends { data: (infer Row)[] } ? Row : Answer;

type Add<Fields, Names extends PropertyKey, Sent> = (
  request: Sent,
  deps: RouteDeps,
) => Added<Fields, Names> | Promise<Added<Fields, Names>>;
type Added<Fields, Names extends PropertyKey> = Omit<Fields, Names> & Partial<Fields>;

type Forward<
  Request extends z.ZodObject,
  Answer extends z.ZodType,
  Query,
  Names extends PropertyKey,
  Sent,
  Shown extends z.ZodType,
> = {
  /** The request, with the query of the route if it is a list. */
  readonly forward: RequestContract<Request, Answer> & { readonly query?: Query };
  /** The description of the response. */
  readonly response: string;
  /** The status of the response; absent: 200, or 204 for an empty answer. */
  readonly status?: 201 | 202 | 204;
  /** What the response shows, if it is not the answer. */
  readonly schema?: Shown;
  /** Makes it of the answer, or of each row of a list. */
  readonly show?: (answer: RowOf<z.output<Answer>>, request: Sent, deps: RouteDeps) => RowOf<z.input<Shown>>;
} & (NoFields extends Omit<z.input<Request>, Names>
  ? { readonly add?: Add<z.input<Request>, Names, Sent> }
  : { readonly add: Add<z.input<Request>, Names, Sent> });

/** The fields that a request may have without `add`. */
const givenFields = ({ caller, params, query }: HandledRequest, { params: declared, query: schema }: Route) => {
  const shape = (schema as z.ZodObject | undefined)?.shape ?? {};
  const page = "per_page" in shape && ("page" in shape ? pageRequest : keysetRequest)(query as object);
  const projectId = "projectId" in caller ? caller.projectId : undefined;
  return { projectId, ...(query as object), page, ...fieldsOf(declared, params) };
};

/**
 * Declares a route that passes its request on to a service. The request has the caller's project, the parameters of path and query, a new
 * id, and what `add` returns. The response is the answer: a page of a list, an object as `data`, or 204 for an empty one. A POST is
 * performed once for its Idempotency-Key.
 */
export const forwardRoute = <
  Path extends `/${string}`,
  Kind extends CallerKind,
  Request extends z.ZodObject,
  Answer extends z.ZodType,
  Query extends z.ZodObject = z.ZodObject<NoFields>,
  Body extends z.ZodType = z.ZodUndefined,
  Shown extends z.ZodType = Answer,
  NewId extends NewIds = NoFields,
>(
  operationId: string,
  place: `${Method} ${Path}`,
  declaration: Omit<Declaration<Kind, ParamsOf<Path>, Query, Body, never>, "responses"> & {
    /** The id of what is created, by its field: a repeat of a POST has the same. */
    readonly newId?: NewId;
  } & Forward<
      Request,
      Answer,
      Query,
      Given<Path, Kind, Query> | keyof NewId,
      RouteRequest<Kind, ParamsOf<Path>, z.ZodType<z.output<Query>>, Body>,
      Shown
    >,
): Route => {
  const {
    forward,
    response: description,
    status,
    schema,
    show,
    add,
    newId,
    ...declared
  } = declaration as unknown as Omit<Route, "responses"> &
    Forward<z.ZodObject, z.ZodType, z.ZodObject, string, HandledRequest, z.ZodType> & { readonly newId?: NewIds };
  const { query: page, answer } = forward;
  const isEmpty = status === 204 || (answer instanceof z.ZodObject && Object.keys(answer.shape).length === 0);
  const [idField, makeId] = Object.entries(newId ?? {})[0] ?? [];

  const reply = async (deps: RouteDeps, request: HandledRequest, id?: string) => {
    const fields = {
      ...givenFields(request, route),
      ...(idField && { [idField]: id }),
      ...(await add?.(request, deps)),
    };
    const asked = Object.entries(fields).filter(([name]) => name in forward.request.shape);
    const answered: unknown = await deps.sendRequest(forward, Object.fromEntries(asked));
    const shown = (one: unknown) => (show ? show(one, request, deps) : one);
    if (page) {
      const found = answered as { readonly data: unknown[]; readonly next: string | null };
      return pageReply({ ...found, data: found.data.map(shown) });
    }
    const data = shown(answered);
    return isEmpty ? noContent() : { status: status ?? 200, body: { data } };
  };

  const route: Route = defineRoute(operationId, place, {
    ...declared,
    ...(page && { query: page }),
    responses: isEmpty
      ? { 204: { description } }
      : { [status ?? 200]: { description, schema: page ? answer : dataOf(schema ?? answer) } },
    handle: (deps: RouteDeps, request: HandledRequest) =>
      place.startsWith("post ")
        ? request.idempotent({ ...(makeId && { newId: makeId }), perform: ({ id }) => reply(deps, request, id) })
        : reply(deps, request),
  } as never);
  return route;
};
