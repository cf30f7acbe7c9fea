import { type Admission, type CircuitBreaker, createCircuitBreaker } from "../domain/circuit-breaker.ts";
import type { ConnectionProblem } from "../domain/outcome.ts";

/** The health of one server of a provider. */
type Route = {
  readonly name: string;
  readonly breaker: CircuitBreaker;
  /** Until when its Retry-After holds, in milliseconds since 1970; 0 for none. */
  throttledUntil: number;
  /** Its last failure. */
  failure: string;
  /** It was not reached when it was last tried. */
  unreached: boolean;
  /** The permit of every push while the server works: one object for all of them. */
  readonly free: Permit;
};

/** The permission to send one push on a route. Reported exactly once: `onSuccess`, `onFailure` or `release`. */
export type Permit = { readonly route: Route; readonly admission: Admission };

export type ProviderRoutes = {
  /** Until when nothing may be sent on a route, in milliseconds since 1970; undefined when it may. */
  blockedUntil(name: string): number | undefined;
  /** The failure that opened a route's breaker; undefined while it is closed. */
  failureOf(name: string): string | undefined;
  /** A permit for one more push, or until when the route is blocked, in milliseconds since 1970. */
  acquire(name: string): Permit | number;
  /** The server answered, whatever it said. */
  onSuccess(permit: Permit): void;
  /** The server is in trouble, or cannot be reached for the reason that `problem` gives. */
  onFailure(permit: Permit, reason: string, problem?: ConnectionProblem): void;
  /** Nothing was sent. */
  release(permit: Permit): void;
  /** True when this extends the route's throttle. */
  throttle(name: string, until: number): boolean;
  /** Whether any route is blocked. */
  anyBlocked(): boolean;
  close(): void;
};

/** A browser's push services are a handful; the rest is a stranger's doing, which may cost no more than some kilobytes. */
const maxRoutes = 256;

/**
 * The servers that a project's provider is reached by, each with its own throttle and circuit breaker: what one of them asks for,
 * or suffers from, keeps no push from the others.
 */
export const createProviderRoutes = ({
  now,
  changed,
  unreached,
  reached,
  knownUnreached = [],
}: {
  readonly now: () => number;
  /** A server is not reached: called for every push that fails so. */
  readonly unreached: (route: string, problem: ConnectionProblem) => void;
  /** A server that was not reached is reached. */
  readonly reached: (route: string) => void;
  /** Routes that were not reached when somebody last tried. */
  readonly knownUnreached?: readonly string[];
  /** A breaker has opened, for the first time in a row or again, or has closed. */
  readonly changed: (change: "opened" | "reopened" | "closed", route: string, reason: string) => void;
}): ProviderRoutes => {
  const routes = new Map<string, Route>();

  const blockedOn = ({ breaker, throttledUntil }: Route, at: number): number | undefined => {
    const blocked = breaker.blockedUntil(at);
    return throttledUntil > at ? Math.max(throttledUntil, blocked ?? 0) : blocked;
  };

  /** What was dropped with an open breaker has counted as closed since then. */
  const notify = (route: Route, change: Parameters<typeof changed>[0], reason = "") => {
    if (routes.get(route.name) === route) changed(change, route.name, reason);
  };

  const drop = (route: Route) => {
    if (!route.breaker.closed()) notify(route, "closed");
    routes.delete(route.name);
  };

  /** The first that may be sent to; without any, the one that is known for longest. */
  const spare = (): Route | undefined => {
    const at = now();
    let first: Route | undefined;
    for (const route of routes.values()) {
      if (blockedOn(route, at) === undefined) return route;
      first ??= route;
    }
    return first;
  };

  const routeOf = (name: string): Route => {
    const known = routes.get(name);
    if (known) return known;
    const old = routes.size >= maxRoutes ? spare() : undefined;
    if (old) drop(old);
    const permit: { route?: Route; admission: Admission } = { admission: "free" };
    const route: Route = {
      name,
      breaker: createCircuitBreaker(),
      throttledUntil: 0,
      failure: "",
      unreached: knownUnreached.includes(name),
      free: permit as Permit,
    };
    permit.route = route;
    routes.set(name, route);
    return route;
  };

  return {
    blockedUntil: (name) => {
      const route = routes.get(name);
      return route && blockedOn(route, now());
    },
    acquire: (name) => {
      const route = routeOf(name);
      // The usual case, which does not read the clock.
      if (route.throttledUntil === 0 && route.breaker.closed()) return route.free;
      const at = now();
      if (route.throttledUntil > at) return blockedOn(route, at) ?? route.throttledUntil;
      route.throttledUntil = 0;
      const admission = route.breaker.admit(at);
      return typeof admission === "number" ? admission : { route, admission };
    },
    failureOf: (name) => {
      const route = routes.get(name);
      return route === undefined || route.breaker.closed() ? undefined : route.failure;
    },
    onSuccess: ({ route, admission }) => {
      if (route.unreached) {
        route.unreached = false;
        reached(route.name);
      }
      if (route.breaker.succeeded(admission)) notify(route, "closed");
    },
    onFailure: ({ route, admission }, reason, problem) => {
      route.failure = reason;
      if (problem) {
        route.unreached = true;
        unreached(route.name, problem);
      }
      const again = !route.breaker.closed();
      if (route.breaker.failed(admission, now())) notify(route, again ? "reopened" : "opened", reason);
    },
    release: ({ route, admission }) => route.breaker.released(admission),
    throttle: (name, until) => {
      const route = routeOf(name);
      if (until <= route.throttledUntil) return false;
      route.throttledUntil = until;
      return true;
    },
    anyBlocked: () => {
      const at = now();
      for (const route of routes.values()) if (blockedOn(route, at) !== undefined) return true;
      return false;
    },
    close: () => {
      for (const route of [...routes.values()]) drop(route);
    },
  };
};
