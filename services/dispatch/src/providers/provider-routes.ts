import type { DeviceId } from "@herald/contracts";
import type { ConnectionProblem } from "../domain/outcome.ts";
import { type AdmittedAt, createRoutePause, type RoutePause } from "./route-pause.ts";

/** The health of one server of a provider. */
type Route = {
  readonly name: string;
  readonly pause: RoutePause;
  /** The pause of the devices that the server refused for now; undefined: it is over. */
  refusedPause?: RoutePause | undefined;
  /** The end of its Retry-After, in milliseconds since 1970; 0 for none. */
  throttledUntil: number;
  /** The reason of its last failure. */
  failure: string;
  /** Whether the last attempt could not reach the server. */
  unreached: boolean;
  /** The permit of every push while the route is open, allocated once. */
  readonly free: RoutePermit;
};

/** The permission to send one push on a route. The caller reports it exactly once. */
export type RoutePermit = { readonly route: Route; readonly pause: RoutePause; readonly admittedAt: AdmittedAt };

/** Browsers use a handful of push services. Devices may name any others, so their state is limited to some kilobytes. */
const maxRoutes = 256;
/** A row whose turn came a moment too early keeps it. */
const minTurnMs = 500;
/** Devices that are remembered as refused, of all routes. */
const maxRefused = 16_384;

type Deps = {
  readonly now: () => number;
  /** A server cannot be reached. Called for every push that fails for this reason. */
  readonly unreached: (route: string, problem: ConnectionProblem) => void;
  /** A server can be reached again. */
  readonly reached: (route: string) => void;
  /** Routes that were not reached at the last attempt. */
  readonly knownUnreached?: readonly string[];
  /** A route pauses, pauses for longer after a failed probe, or is open again. */
  readonly changed: (change: "opened" | "reopened" | "closed", route: string, reason: string) => void;
};

/**
 * The servers of a project's provider, each with its own throttle and pause: a server that throttles or fails does not block pushes to
 * the others. Who registers devices may make a server refuse them: a push service answers 507 for a topic without a subscriber, and may limit
 * each topic. So devices whose last answer was such a refusal have a pause of their own, and delay no other device.
 */
export const createProviderRoutes = ({ now, changed, unreached, reached, knownUnreached = [] }: Deps) => {
  const routes = new Map<string, Route>();
  /** The devices that a server refused at their last push, oldest first. */
  const refused = new Set<DeviceId>();
  const addRefused = (device: DeviceId) => {
    refused.delete(device);
    refused.add(device);
    const [oldest] = refused;
    if (oldest !== undefined && refused.size > maxRefused) refused.delete(oldest);
  };

  /** The pause that a device is subject to. */
  const pauseOf = ({ pause, refusedPause }: Route, device: DeviceId): RoutePause =>
    refusedPause && !pause.is("failing") && refused.has(device) ? refusedPause : pause;

  const blockedOn = ({ throttledUntil }: Route, pause: RoutePause, at: number): number | undefined => {
    const blocked = pause.isOpen ? undefined : pause.blockedUntil(at);
    return throttledUntil > at ? Math.max(throttledUntil, blocked ?? 0) : blocked;
  };

  /** Does nothing for a route that was dropped: dropping it has reported its pause as over. */
  const notify = (route: Route, change: Parameters<typeof changed>[0], reason = "") => {
    if (routes.get(route.name) === route) changed(change, route.name, reason);
  };

  const drop = (route: Route) => {
    if (!route.pause.isOpen) notify(route, "closed");
    routes.delete(route.name);
  };

  /** The route to drop: the first that is not blocked or, if all are blocked, the oldest. */
  const spare = (): Route | undefined => {
    const at = now();
    let first: Route | undefined;
    for (const route of routes.values()) {
      if (blockedOn(route, route.pause, at) === undefined) return route;
      first ??= route;
    }
    return first;
  };

  const routeOf = (name: string): Route => {
    const known = routes.get(name);
    if (known) return known;
    const old = routes.size >= maxRoutes ? spare() : undefined;
    if (old) drop(old);
    const pause = createRoutePause();
    const permit: { route?: Route; pause: RoutePause; admittedAt: AdmittedAt } = { pause, admittedAt: 0 };
    const route: Route = {
      name,
      pause,
      throttledUntil: 0,
      failure: "",
      unreached: knownUnreached.includes(name),
      free: permit as RoutePermit,
    };
    permit.route = route;
    routes.set(name, route);
    return route;
  };

  /** The server responded. */
  const onReached = (route: Route) => {
    if (!route.unreached) return;
    route.unreached = false;
    reached(route.name);
  };

  return {
    /** Until when nothing may be sent to a device on a route, in milliseconds since 1970; undefined when it may. */
    blockedUntil: (name: string, device: DeviceId): number | undefined => {
      const route = routes.get(name);
      return route && blockedOn(route, pauseOf(route, device), now());
    },
    /** Returns a permit for one more push, or the time until which the route is blocked, in milliseconds since 1970. */
    acquire: (name: string, device: DeviceId): RoutePermit | number => {
      const route = routeOf(name);
      // The usual case, without reading the clock.
      if (route.throttledUntil === 0 && route.pause.isOpen && route.refusedPause?.isOpen !== false) return route.free;
      const at = now();
      const pause = pauseOf(route, device);
      if (route.throttledUntil > at) return blockedOn(route, pause, at) ?? route.throttledUntil;
      route.throttledUntil = 0;
      const admitted = pause.admit(at);
      return typeof admitted === "number" ? admitted : { route, pause, ...admitted };
    },
    /** When a row looks again whose devices on a route are blocked until `at`, in milliseconds since 1970. `device`: one of them. */
    turnFrom: (name: string, device: DeviceId, at: number): number => {
      const route = routes.get(name);
      return route && at - now() >= minTurnMs ? pauseOf(route, device).turnFrom(at) : at;
    },
    /** The failure that paused a route; undefined while it is open. */
    failureOf: (name: string): string | undefined => {
      const route = routes.get(name);
      return route && !(route.pause.isOpen && route.refusedPause?.isOpen !== false) ? route.failure : undefined;
    },
    /** The server responded, with any status but a limit. */
    onSuccess: ({ route, pause, admittedAt }: RoutePermit, device: DeviceId) => {
      onReached(route);
      const own = route.refusedPause;
      if (pause === own || (refused.size > 0 && refused.delete(device))) {
        refused.delete(device);
        if (own?.succeeded(pause === own ? admittedAt : 0)) route.refusedPause = undefined;
      }
      if (pause !== route.pause || pause.isUntroubled) return;
      if (pause.succeeded(admittedAt)) notify(route, "closed");
    },
    /** The server fails or, with `problem`, cannot be reached. */
    onFailure: ({ route, pause, admittedAt }: RoutePermit, reason: string, problem?: ConnectionProblem) => {
      route.failure = reason;
      if (problem) {
        route.unreached = true;
        unreached(route.name, problem);
      }
      pause.released(admittedAt);
      const change = route.pause.isOpen ? "opened" : "reopened";
      const at = now();
      if (problem ? route.pause.refused("failing", admittedAt, at) : route.pause.failed(admittedAt, at))
        notify(route, change, reason);
    },
    /**
     * The server answered that it does not take the push now, and not for how long. `limit`: it limits this sender, or the answer concerns
     * the device alone. A limit of the sender may in fact be one of the device.
     */
    onRefusal: (
      { route, pause, admittedAt }: RoutePermit,
      device: DeviceId,
      reason: string,
      limit: "sender" | "device",
    ) => {
      onReached(route);
      addRefused(device);
      route.failure = reason;
      route.refusedPause ??= createRoutePause();
      const own = route.refusedPause;
      const at = now();
      const admittedToOwn = pause === own ? admittedAt : 0;
      if (limit === "sender") own.refused("limited", admittedToOwn, at);
      else if (!own.is("limited")) own.failed(admittedToOwn, at);
      else if (own.succeeded(admittedToOwn)) route.refusedPause = undefined;
      if (pause !== route.pause) return;
      if (limit === "device") {
        if (pause.succeeded(admittedAt)) notify(route, "closed");
        return;
      }
      const change = pause.isOpen ? "opened" : "reopened";
      if (pause.refused("limited", admittedAt, at)) notify(route, change, reason);
    },
    /** The push was not sent. */
    release: ({ pause, admittedAt }: RoutePermit) => pause.released(admittedAt),
    /** True when this extends the route's throttle. */
    throttle: (name: string, until: number): boolean => {
      const route = routeOf(name);
      if (until <= route.throttledUntil) return false;
      route.throttledUntil = until;
      return true;
    },
    /** Whether any route may be blocked for a device. */
    anyBlocked: (): boolean => {
      const at = now();
      for (const route of routes.values())
        if (route.refusedPause?.isOpen === false || blockedOn(route, route.pause, at) !== undefined) return true;
      return false;
    },
    close: () => {
      for (const route of [...routes.values()]) drop(route);
    },
  };
};
