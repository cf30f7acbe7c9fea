import type { ConnectionProblem } from "../domain/outcome.ts";

/** Consecutive failures that open the breaker: more than a short disturbance, and less than half of a batch's first chunk. */
const failuresToOpen = 20;
/** By then, a lost connection or a provider's restart is usually over … */
const firstOpenMs = 5_000;
/** … and dispatch notices a recovered provider within a minute. */
const maxOpenMs = 60_000;
/** How many pushes at a time probe whether the server works again. */
const maxProbes = 5;
/** While probes are in flight, other pushes wait this long: a response usually takes less, a timeout more. */
const probeCheckMs = 5_000;

/** An ordinary push, or a probe of whether the server works again. */
export type Admission = "free" | "probe";

/**
 * Blocks pushes to a server that keeps failing. Failures caused by the device or the message do not count.
 * Times are milliseconds since 1970. Callers report every admitted push exactly once.
 */
export const createCircuitBreaker = () => {
  let failures = 0;
  let openings = 0;
  /** 0 while the breaker is closed. */
  let openUntil = 0;
  let probes = 0;

  /** Until when pushes are blocked; undefined when the breaker admits a push. */
  const blockedUntil = (at: number): number | undefined => {
    if (openUntil === 0) return undefined;
    if (at < openUntil) return openUntil;
    return probes < maxProbes ? undefined : at + probeCheckMs;
  };
  const open = (at: number): true => {
    openUntil = at + Math.min(maxOpenMs, firstOpenMs * 2 ** openings);
    openings++;
    failures = 0;
    return true;
  };
  /** The push was not sent, so the server's health is still unknown. */
  const released = (admission: Admission): void => {
    if (admission === "probe") probes--;
  };

  return {
    closed: () => openUntil === 0,
    blockedUntil,
    released,
    /** Admits one more push, or returns the time until which it must wait. */
    admit: (at: number): Admission | number => {
      const blocked = blockedUntil(at);
      if (blocked !== undefined) return blocked;
      if (openUntil === 0) return "free";
      probes++;
      return "probe";
    },
    /** The server responded, with any status. True when that closes the breaker. */
    succeeded: (admission: Admission): boolean => {
      released(admission);
      failures = 0;
      if (openUntil === 0) return false;
      openUntil = 0;
      openings = 0;
      return true;
    },
    /** True when that opens the breaker, or keeps it open for longer. */
    failed: (admission: Admission, at: number): boolean => {
      released(admission);
      if (openUntil === 0) return ++failures >= failuresToOpen && open(at);
      // A push sent before the breaker opened tells nothing about the server now. Of several probes, the first decides.
      return admission === "probe" && at >= openUntil && open(at);
    },
  };
};

/** The health of one server of a provider. */
type Route = {
  readonly name: string;
  readonly breaker: ReturnType<typeof createCircuitBreaker>;
  /** The end of its Retry-After, in milliseconds since 1970; 0 for none. */
  throttledUntil: number;
  /** The reason of its last failure. */
  failure: string;
  /** Whether the last attempt could not reach the server. */
  unreached: boolean;
  /** The permit of every push while the breaker is closed, allocated once. */
  readonly free: RoutePermit;
};

/** The permission to send one push on a route. The caller reports it exactly once: `onSuccess`, `onFailure` or `release`. */
export type RoutePermit = { readonly route: Route; readonly admission: Admission };

/** Browsers use a handful of push services. Devices may name any others, so their state is limited to some kilobytes. */
const maxRoutes = 256;

type Deps = {
  readonly now: () => number;
  /** A server cannot be reached. Called for every push that fails for this reason. */
  readonly unreached: (route: string, problem: ConnectionProblem) => void;
  /** A server can be reached again. */
  readonly reached: (route: string) => void;
  /** Routes that were not reached at the last attempt. */
  readonly knownUnreached?: readonly string[];
  /** A breaker has opened, has reopened after failed probes, or has closed. */
  readonly changed: (change: "opened" | "reopened" | "closed", route: string, reason: string) => void;
};

/**
 * The servers of a project's provider, each with its own throttle and circuit breaker: a server that throttles or fails does not
 * block pushes to the others.
 */
export const createProviderRoutes = ({ now, changed, unreached, reached, knownUnreached = [] }: Deps) => {
  const routes = new Map<string, Route>();

  const blockedOn = ({ breaker, throttledUntil }: Route, at: number): number | undefined => {
    const blocked = breaker.blockedUntil(at);
    return throttledUntil > at ? Math.max(throttledUntil, blocked ?? 0) : blocked;
  };

  /** Does nothing for a route that was dropped: dropping it has reported its breaker as closed. */
  const notify = (route: Route, change: Parameters<typeof changed>[0], reason = "") => {
    if (routes.get(route.name) === route) changed(change, route.name, reason);
  };

  const drop = (route: Route) => {
    if (!route.breaker.closed()) notify(route, "closed");
    routes.delete(route.name);
  };

  /** The route to drop: the first that is not blocked or, if all are blocked, the oldest. */
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
      free: permit as RoutePermit,
    };
    permit.route = route;
    routes.set(name, route);
    return route;
  };

  return {
    /** Until when nothing may be sent on a route, in milliseconds since 1970; undefined when it may. */
    blockedUntil: (name: string): number | undefined => {
      const route = routes.get(name);
      return route && blockedOn(route, now());
    },
    /** Returns a permit for one more push, or the time until which the route is blocked, in milliseconds since 1970. */
    acquire: (name: string): RoutePermit | number => {
      const route = routeOf(name);
      // The usual case, without reading the clock.
      if (route.throttledUntil === 0 && route.breaker.closed()) return route.free;
      const at = now();
      if (route.throttledUntil > at) return blockedOn(route, at) ?? route.throttledUntil;
      route.throttledUntil = 0;
      const admission = route.breaker.admit(at);
      return typeof admission === "number" ? admission : { route, admission };
    },
    /** The failure that opened a route's breaker; undefined while it is closed. */
    failureOf: (name: string): string | undefined => {
      const route = routes.get(name);
      return route === undefined || route.breaker.closed() ? undefined : route.failure;
    },
    /** The server responded, with any status. */
    onSuccess: ({ route, admission }: RoutePermit) => {
      if (route.unreached) {
        route.unreached = false;
        reached(route.name);
      }
      if (route.breaker.succeeded(admission)) notify(route, "closed");
    },
    /** The server fails or, with `problem`, cannot be reached. */
    onFailure: ({ route, admission }: RoutePermit, reason: string, problem?: ConnectionProblem) => {
      route.failure = reason;
      if (problem) {
        route.unreached = true;
        unreached(route.name, problem);
      }
      const again = !route.breaker.closed();
      if (route.breaker.failed(admission, now())) notify(route, again ? "reopened" : "opened", reason);
    },
    /** The push was not sent. */
    release: ({ route, admission }: RoutePermit) => route.breaker.released(admission),
    /** True when this extends the route's throttle. */
    throttle: (name: string, until: number): boolean => {
      const route = routeOf(name);
      if (until <= route.throttledUntil) return false;
      route.throttledUntil = until;
      return true;
    },
    /** Whether any route is blocked. */
    anyBlocked: (): boolean => {
      const at = now();
      for (const route of routes.values()) if (blockedOn(route, at) !== undefined) return true;
      return false;
    },
    close: () => {
      for (const route of [...routes.values()]) drop(route);
    },
  };
};
