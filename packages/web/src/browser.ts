import { ownProblem } from "./problem.ts";
import { noPushService, subscribe, subscriptionOf } from "./register.ts";
import type { PendingReport } from "./state.ts";
import { timely } from "./timely.ts";

export const isSupported = (): boolean => {
  try {
    return isSecureContext && Boolean(navigator.serviceWorker) && "PushManager" in self && "Notification" in self;
  } catch {
    // A sandboxed frame may not even ask.
    return false;
  }
};

export const browserPermission = (): NotificationPermission | "unsupported" =>
  isSupported() ? Notification.permission : "unsupported";

const noWorker = "worker-unavailable";

/** The worker's registration, if it has one. */
export const workerOf = (script: string): Promise<ServiceWorkerRegistration | undefined> =>
  timely(navigator.serviceWorker.getRegistration(new URL(".", new URL(script, location.href))), noWorker);

/** Registers or updates the worker, and waits until it is active: subscribing needs an active worker. Throws a Problem. */
export const activeWorker = (script: string): Promise<ServiceWorkerRegistration> =>
  timely(register(script), noWorker).catch((error) => {
    throw error.slug ? error : ownProblem(noWorker, error);
  });

const register = async (script: string): Promise<ServiceWorkerRegistration> => {
  const registration = await navigator.serviceWorker.register(script);
  const next = registration.installing ?? registration.waiting;
  if (!registration.active && next)
    await new Promise<void>((resolve) => {
      next.onstatechange = () => {
        if (next.state === "activated" || next.state === "redundant") resolve();
      };
    });
  return registration;
};

/** Closes Herald's notifications that this browser shows. */
export const closeShown = async (script: string): Promise<void> => {
  const registration = await workerOf(script);
  const all = registration ? await timely(registration.getNotifications(), noWorker) : [];
  for (const shown of all) if (shown.data?.notification_id) shown.close();
};

/** Ends the browser's subscription: the push service then drops what it has not delivered. */
export const endSubscription = async (script: string): Promise<void> => {
  const registration = await workerOf(script);
  const subscription = registration && (await subscriptionOf(registration.pushManager));
  if (subscription) await timely(subscription.unsubscribe(), noPushService);
};

/**
 * `work` with the push manager. Throws a Problem if the push service cannot be reached: Firefox asks it for a known subscription, too. The
 * worker does without, because it shows no problem to anyone.
 */
export const ofPushService = <Value>(work: Promise<Value>): Promise<Value> =>
  work.catch((error) => {
    if (error.name !== "AbortError") throw error;
    throw ownProblem(noPushService, `the browser does not reach its push service (${error.message})`);
  });

/** A subscription that the browser is still making. It is not asked for a second one: this one may come late, or never. */
let subscribing: Promise<PushSubscription> | undefined;

/** Throws a Problem if the browser did not answer the last time. */
export const subscribeOnce: typeof subscribe = async (manager, key) => {
  if (subscribing) throw ownProblem(noPushService, "the browser still waits for its push service");
  subscribing = subscribe(manager, key);
  try {
    return await subscribing;
  } finally {
    subscribing = undefined;
  }
};

/** A person may leave the question open for ever. */
const promptMs = 60_000;

/** Asks for permission, for a minute at most. A later answer calls `onLate`. */
export const askForPermission = async (onLate: () => unknown): Promise<void> => {
  // Old versions of Safari take a callback instead, and return undefined.
  const answer = Promise.resolve(Notification.requestPermission());
  await timely(answer, "", () => answer.then(onLate), promptMs).catch(() => undefined);
};

/** What a declarative push adds to the address of the page that its click opens. */
const mark = /([?#&])herald=(ntf_[0-9a-z]{26})\.([\w.-]+)(&?)/;

/** Takes the open out of the page's address: Safari shows some pushes without the worker, and a click on one opens the page directly. */
export const takeOpenFromAddress = (project: string): PendingReport | undefined => {
  const [, before, notification, token, after] = mark.exec(location.href) ?? [];
  if (!notification || !token) return undefined;
  const rest = location.href.replace(mark, before === "?" && after ? "?" : (after ?? ""));
  history.replaceState(history.state, "", rest);
  return { notification, project, token, verb: "open", at: Date.now() };
};
