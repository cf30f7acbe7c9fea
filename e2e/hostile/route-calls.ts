import type { Route } from "../../services/gateway/src/http/route.ts";
import { allRoutes } from "../../services/gateway/src/routes/all-routes.ts";
import type { World as GatewayWorld } from "../../services/gateway/test/route-case.ts";
import { table } from "../../services/gateway/test/route-table.ts";
import type { World } from "./world.ts";

export type RouteCall = {
  readonly route: Route;
  readonly method: string;
  /** The path, beginning with `/api` or `/admin`. */
  readonly path: string;
  /** A valid body; undefined if the route takes none. */
  readonly body: unknown;
  /** The status with a credential of another project: 404 unless the route names no resource. */
  readonly foreign: number;
};

/** Every route with the ids of this world in its path and body. */
export const callsOf = (world: World): RouteCall[] =>
  allRoutes.map((route) => {
    const known = table[route.operationId];
    if (known === undefined) throw new Error(`${route.operationId} is not in the table`);
    const [method = "", path = ""] = known.route(world as GatewayWorld).split(" ");
    return { route, method, path, body: known.body?.(world as GatewayWorld), foreign: known.foreign ?? 404 };
  });

/** The credential that a route takes: the admin token, the project's, or none. */
export const credentialOf = ({ access }: Route, adminToken: string, { project }: World): string | undefined => {
  if (access.by.includes("operator")) return adminToken;
  return access.by.includes("project") ? project.token : undefined;
};
