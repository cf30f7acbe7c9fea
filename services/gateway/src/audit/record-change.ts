import type { ProjectId } from "@herald/contracts";
import { HeraldError } from "@herald/kit";
import type { ActingOperator, Caller } from "../auth/caller.ts";
import type { RouteDeps } from "../deps.ts";
import type { HandledRequest, Route } from "../http/route.ts";
import { auditedSend, auditedState, isDryRun } from "./audited-state.ts";

const operatorOf = (caller: Caller): ActingOperator | undefined => ("operator" in caller ? caller.operator : undefined);

/** The path without user ids, which an audit row would keep after the user is erased. */
const targetOf = ({ path }: Route, params: HandledRequest["params"]): string =>
  path.replaceAll(/\{(\w+)\}/g, (_, name: string) => (name === "user" ? "{user}" : String(params[name])));

const projectOf = ({ path }: Route, { caller, params }: HandledRequest): ProjectId | undefined => {
  if ("projectId" in caller) return caller.projectId;
  return path.startsWith("/admin/v1/projects/{id}") ? (params.id as ProjectId) : undefined;
};

/** The route that reads what another changes; undefined where there is none, or where it may show personal data. */
export const readerOf = (route: Route, routes: readonly Route[]): Route | undefined =>
  route.path.startsWith("/admin/") && route.method !== "get" && route.method !== "post"
    ? routes.find(({ method, path }) => method === "get" && path === route.path)
    : undefined;

/** What a route is about to change, as its reader answers it; null where there is nothing. */
const stateBefore = async (reader: Route, request: HandledRequest, deps: RouteDeps) => {
  try {
    const { body } = await reader.handle(deps, { ...request, query: {}, body: undefined });
    return auditedState((body as unknown as { readonly data?: unknown }).data) ?? null;
  } catch (error) {
    if (error instanceof HeraldError && error.code.endsWith("-not-found")) return null;
    throw error;
  }
};

const stateAfter = (route: Route, { body }: HandledRequest) => {
  if (route.method === "delete") return null;
  return route.tag === "Notifications" && route.body !== undefined ? auditedSend(body) : auditedState(body);
};

/**
 * Records what an operator is about to change, before it is changed: there is no change without an event on disk. Does nothing for other
 * callers, for reads and for dry runs. Throws bus-unavailable, and what the reader throws.
 */
export const recordChange = async (
  route: Route,
  reader: Route | undefined,
  request: HandledRequest,
  deps: RouteDeps,
): Promise<void> => {
  const operator = operatorOf(request.caller);
  if (operator === undefined || route.method === "get" || isDryRun(request.body)) return;
  const { id, name, role } = operator;
  const projectId = projectOf(route, request);
  const before = reader && (await stateBefore(reader, request, deps));
  const after = stateAfter(route, request);
  await deps.audit.record({
    operator: { id, name, role },
    action: route.operationId,
    ...(projectId !== undefined && { target_project_id: projectId }),
    target: targetOf(route, request.params),
    address: request.address,
    ...(before !== undefined && { before }),
    ...(after !== undefined && { after }),
  });
};
