import type { BrowserContext } from "playwright-core";
import type { System } from "../harness/system.ts";
import type { PageScope } from "./browser-globals.ts";

/** The fields of a subscription that a page sees, and its key. */
type Subscription = { endpoint: string; keys: Record<string, string>; applicationServerKey: string };

/**
 * Replaces the browser's push service, which a headless Chromium lacks: `PushManager.subscribe` returns a subscription at the simulator
 * with real keys. All tabs share one subscription, as they share the worker, and it outlives a page.
 */
export type PushService = {
  /** Installs it in the pages of a browser. */
  standIn(context: BrowserContext): Promise<void>;
  /** The current subscription, if any. */
  current(): Subscription | undefined;
  /** The number of created subscriptions. */
  made(): number;
  /** `subscribe` gets no answer, as behind a firewall that blocks the push service, until the returned function is called. */
  hold(): () => void;
  /** How many calls of `subscribe` have waited for that. */
  held(): number;
  /** From now on, endpoints of subscriptions are this one. */
  setEndpoint(endpoint: string): void;
  /** Without a network a browser cannot subscribe. */
  setOffline(offline: boolean): void;
  forget(): void;
};

export function createPushService({ simulators }: Pick<System, "simulators">): PushService {
  let current: Subscription | undefined;
  let made = 0;
  let isOffline = false;
  let reachable: Promise<void> | undefined;
  let held = 0;
  let endpoint: string | undefined;
  const answer = async (verb: string, applicationServerKey: string): Promise<Subscription | null> => {
    if (verb === "unsubscribe" && current) {
      await fetch(`${simulators.url}/webpush/subscriptions/${current.endpoint.split("/").at(-1)}`, {
        method: "DELETE",
      });
      current = undefined;
    }
    if (verb === "subscribe") {
      if (reachable) held += 1;
      await reachable;
      if (isOffline) throw new Error("AbortError: no network");
      const body = JSON.stringify({ applicationServerKey });
      const response = await fetch(`${simulators.url}/webpush/subscriptions`, { method: "POST", body });
      current = { ...((await response.json()) as Subscription), ...(endpoint && { endpoint }), applicationServerKey };
      made += 1;
    }
    return current ?? null;
  };
  return {
    standIn: async (context) => {
      await context.exposeFunction("heraldPushService", answer);
      await context.addInitScript(replacePushManager);
    },
    current: () => current,
    made: () => made,
    hold: () => {
      const { promise, resolve } = Promise.withResolvers<void>();
      reachable = promise;
      return resolve;
    },
    held: () => held,
    setEndpoint: (value) => {
      endpoint = value;
    },
    setOffline: (offline) => {
      isOffline = offline;
    },
    forget: () => {
      current = undefined;
      made = 0;
      endpoint = undefined;
      reachable = undefined;
      held = 0;
    },
  };
}

/** Runs in the page. */
function replacePushManager(): void {
  type Found = { endpoint: string; keys: object; applicationServerKey: string };
  const page = globalThis as unknown as PageScope & {
    heraldPushService(verb: "unsubscribe" | "get"): Promise<Found | null>;
    heraldPushService(verb: "subscribe", applicationServerKey: string): Promise<Found | null>;
  };
  if (!page.PushManager) return;
  const subscriptionOf = (found: Found | null) =>
    found && {
      endpoint: found.endpoint,
      options: {
        applicationServerKey: Uint8Array.from(
          page.atob(found.applicationServerKey.replaceAll("-", "+").replaceAll("_", "/")),
          (character) => character.charCodeAt(0),
        ).buffer,
      },
      toJSON: () => ({ endpoint: found.endpoint, keys: found.keys }),
      unsubscribe: async () => (await page.heraldPushService("unsubscribe")) === null,
    };
  Object.assign(page.PushManager.prototype, {
    subscribe: async ({ applicationServerKey }: { applicationServerKey: string }) => {
      if (page.Notification.permission !== "granted") throw new page.DOMException("refused", "NotAllowedError");
      return subscriptionOf(await page.heraldPushService("subscribe", applicationServerKey));
    },
    getSubscription: async () => subscriptionOf(await page.heraldPushService("get")),
  });
}
