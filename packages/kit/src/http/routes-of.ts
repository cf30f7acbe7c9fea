import type { Request } from "express";

/** What express keeps of a route or of a mounted router; not in its types. */
type Layer = {
  readonly route?: { readonly path: unknown; readonly methods?: Readonly<Record<string, boolean>> };
  readonly handle?: { readonly stack?: readonly Layer[] };
  readonly rawPath?: unknown;
  match(path: string): { readonly path: string } | boolean;
  readonly path?: string;
};

export type Stack = { readonly stack: readonly unknown[] };

type Found = { readonly pattern: string; readonly methods: readonly string[] };

/** Every route that a path leads to, whatever the method. */
export const routesOf = (router: Stack, path: string, mount = ""): Found[] =>
  (router.stack as readonly Layer[]).flatMap((layer): Found[] => {
    if (!layer.route && !layer.handle?.stack) return [];
    let match: ReturnType<Layer["match"]>;
    try {
      match = layer.match(path);
    } catch {
      // Its parameters are not valid percent-encoding; the router says so itself.
      return [];
    }
    if (!match) return [];
    if (layer.route)
      return [{ pattern: mount + String(layer.route.path), methods: Object.keys(layer.route.methods ?? {}) }];
    const matched = typeof match === "object" ? match.path : (layer.path ?? "");
    const rest = path.slice(matched.length);
    const prefix = typeof layer.rawPath === "string" && layer.rawPath !== "/" ? layer.rawPath : "";
    return routesOf(layer.handle as Stack, rest.startsWith("/") ? rest : `/${rest}`, mount + prefix);
  });

/** The methods that a path has, upper case, for `Allow`; none when there is no such path. A literal path is no one's parameter. */
export const methodsOf = (router: Stack, path: string): string[] => {
  const found = routesOf(router, path);
  const literal = found.filter(({ pattern }) => !pattern.includes(":"));
  const own = literal.length > 0 ? literal : found;
  const methods = new Set(own.flatMap((route) => route.methods.map((name) => name.toUpperCase())));
  if (methods.has("GET")) methods.add("HEAD");
  return [...methods].sort();
};

const unmatched = "unmatched";

/**
 * The pattern of the route that answered, such as `/api/v1/devices/:id`: low in cardinality, for logs, spans and metrics.
 * Routers are mounted on plain paths, so the mount's path is its pattern.
 */
export const patternOf = (request: Request, router: Stack, failed: boolean): string => {
  const path: unknown = request.route?.path;
  if (typeof path !== "string") return unmatched;
  // An error has left the mounted router, and with it the mount's path was forgotten.
  if (!failed || (router.stack as readonly Layer[]).some(({ route }) => route === request.route))
    return request.baseUrl + path;
  const method = request.method.toLowerCase();
  const found = routesOf(router, request.path).find(
    (route) => route.pattern.endsWith(path) && (route.methods.includes(method) || route.methods.includes("get")),
  );
  return found?.pattern ?? path;
};
