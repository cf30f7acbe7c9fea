import { cutText, type ProjectId } from "@herald/contracts";
import { HeraldError } from "@herald/kit";
import type { ActingOperator } from "../auth/caller.ts";
import type { RouteDeps } from "../deps.ts";
import type { HandledRequest, Route } from "./route.ts";

/** The path without user ids, because an audit row outlives an erased user. */
const targetOf = ({ path }: Route, params: HandledRequest["params"]): string =>
  path.replaceAll(/\{(\w+)\}/g, (_, name: string) => (name === "user" ? "{user}" : String(params[name])));

const projectOf = ({ path }: Route, { caller, params }: HandledRequest): ProjectId | undefined => {
  if ("projectId" in caller) return caller.projectId;
  return path.startsWith("/admin/v1/projects/{id}") ? (params.id as ProjectId) : undefined;
};

/** Also a POST that renders or counts. */
const onlyReads = ({ method, access: { scopes = [] } }: Route): boolean =>
  method === "get" || (scopes.length > 0 && scopes.every((scope) => scope === "read"));

/** The GET route for the state that a route changes. Undefined without such a route, or if its response may show personal data. */
export const readerOf = (route: Route, routes: readonly Route[]): Route | undefined =>
  route.path.startsWith("/admin/") && route.method !== "get" && route.method !== "post"
    ? routes.find(({ method, path }) => method === "get" && path === route.path)
    : undefined;

/** The state that a route is about to change, read by its `reader`; null if it does not exist. */
const stateBefore = async (reader: Route, request: HandledRequest, deps: RouteDeps) => {
  try {
    const { body } = await reader.handle(deps, { ...request, query: {}, body: undefined });
    const { data } = body as unknown as { readonly data?: unknown };
    // A list is not the state of one thing.
    return Array.isArray(data) ? undefined : (auditedState(data) ?? null);
  } catch (error) {
    if (error instanceof HeraldError && error.code.endsWith("-not-found")) return null;
    throw error;
  }
};

const stateAfter = (route: Route, { body }: HandledRequest) => {
  if (route.method === "delete") return null;
  if (
    route.tag === "Notifications" &&
    route.method !== "patch" &&
    !route.path.endsWith("/pause") &&
    route.body !== undefined
  )
    return auditedSend(body);
  return route.path.startsWith("/api/") ? auditedFields(body) : auditedState(body);
};

/**
 * Records an operator's change before the change is made: without an event on disk there is no change. Ignores reads and dry
 * runs. Throws bus-unavailable, and the errors of the reader.
 */
export const recordChange = async (
  { id, name, role }: ActingOperator,
  route: Route,
  reader: Route | undefined,
  request: HandledRequest,
  deps: RouteDeps,
): Promise<void> => {
  if (onlyReads(route) || isDryRun(request.body)) return;
  const projectId = projectOf(route, request);
  const before = reader && (await stateBefore(reader, request, deps));
  const after = stateAfter(route, request);
  await deps.audit({
    operator: { id, name, role },
    action: route.operationId,
    ...(projectId !== undefined && { target_project_id: projectId }),
    target: targetOf(route, request.params),
    address: request.address,
    ...(before !== undefined && { before }),
    ...(after !== undefined && { after }),
  });
};

/** Text in these fields is not secret and describes the change. All other text is masked, so a new field is safe until it is listed. */
const shown: ReadonlySet<string> = new Set([
  "action",
  "algorithm",
  "bundle_id",
  "closed",
  "created_at",
  "dead_letters",
  "durable",
  "enabled",
  "endpoint",
  "environment",
  "events",
  "expires_at",
  "from",
  "id",
  "key",
  "key_id",
  "kind",
  "mode",
  "name",
  "per",
  "platform",
  "protected_metadata",
  "provider",
  "public_key",
  "reason",
  "role",
  "rotated_at",
  "scopes",
  "status",
  "subject",
  "team_id",
  "title",
  "to",
  "until",
  "updated_at",
]);

const maxText = 200;
const maxItems = 100;
const maxDepth = 5;

const stateOf = (value: unknown, name: string, depth: number): unknown => {
  if (typeof value === "string") return shown.has(name) ? cutText(value, maxText) : "[masked]";
  if (typeof value !== "object" || value === null) return value;
  if (depth === maxDepth) return "[masked]";
  if (Array.isArray(value)) return value.slice(0, maxItems).map((item) => stateOf(item, name, depth + 1));
  return Object.fromEntries(
    Object.entries(value)
      .slice(0, maxItems)
      .map(([key, inner]) => [cutText(key, maxText), stateOf(inner, key, depth + 1)]),
  );
};

/** A request or response body for an audit row: bounded, and without secrets. */
export const auditedState = (value: unknown): Record<string, unknown> | undefined =>
  typeof value === "object" && value !== null && !Array.isArray(value)
    ? (stateOf(value, "", 0) as Record<string, unknown>)
    : undefined;

/** Fields whose content and names an app chooses. */
const ofApps: ReadonlySet<string> = new Set(["metadata", "identifiers"]);

/**
 * Shows only the names of the fields that a request sets, such as `device.metadata`: what belongs to a project may be personal data, and
 * an erasure cannot reach audit rows. Every name but those below `metadata` and `identifiers` is one that the route declares.
 */
export const auditedFields = (body: unknown): Record<string, unknown> | undefined => {
  if (typeof body !== "object" || body === null) return undefined;
  const namesIn = ([name, value]: [string, unknown]): string[] =>
    typeof value !== "object" || value === null || Array.isArray(value) || ofApps.has(name)
      ? [name]
      : Object.keys(value).map((inner) => `${name}.${inner}`);
  return { fields: Object.entries(body).flatMap(namesIn).slice(0, maxItems) };
};

type SendBody = {
  readonly notification?: { readonly targets?: readonly unknown[]; readonly dry_run?: boolean };
  readonly notifications?: readonly unknown[];
};

/** Whether a body is a dry run. Dry runs change nothing, and the console sends them while its operator types. */
export const isDryRun = (body: unknown): boolean => (body as SendBody | undefined)?.notification?.dry_run === true;

/** Shows only the size of a send: an audit row would keep titles and targets, which are personal data, after a user is erased. */
export const auditedSend = (body: unknown): Record<string, unknown> => {
  const { notification, notifications } = body as SendBody;
  return notifications === undefined
    ? { targets: notification?.targets?.length ?? 0 }
    : { notifications: notifications.length };
};
