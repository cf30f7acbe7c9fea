import { call } from "./call.ts";
import { type CallProblem, ownProblem } from "./problem.ts";
import type { State } from "./state.ts";
import { timely } from "./timely.ts";
import type { IdentificationAnswer, IdentificationBody, WebPushKeyAnswer } from "./wire.ts";

/** The VAPID public key of a subscription, in Herald's format: base64url without padding. */
const keyOf = ({ options }: PushSubscription): string =>
  btoa(String.fromCharCode(...new Uint8Array(options.applicationServerKey as ArrayBuffer)))
    .replaceAll("+", "-")
    .replaceAll("/", "_")
    .replace(/=+$/, "");

/** What the worker does: an older one registered without it, so a change registers the device again. */
const capabilities = ["receipts", "buttons"];

/** What the device registers with, as a text to compare. */
export const registrationText = ({ data }: State): string => JSON.stringify([data, capabilities]);

export const noPushService = "push-service-unreachable";

/** The browser's subscription, if it has one. */
export const subscriptionOf = (manager: PushManager): Promise<PushSubscription | null> =>
  timely(manager.getSubscription(), noPushService);

export const subscribe = (manager: PushManager, applicationServerKey: string): Promise<PushSubscription> =>
  manager.subscribe({ userVisibleOnly: true, applicationServerKey });

/**
 * Subscribes with the project's current key, or keeps a subscription that has this key, and registers it with Herald. If Herald knows the
 * subscription, but not by this browser's device credential, replaces it: Herald gives a credential only for a push endpoint that it has
 * not seen. Throws a Problem or an error of the browser.
 */
export const register = async (
  { pushManager }: ServiceWorkerRegistration,
  state: State,
  makeSubscription = subscribe,
): Promise<State> => {
  const { gateway, project, device, endpoint } = state;
  const { data: key } = await call<WebPushKeyAnswer>(gateway, `GET webpush-key?project_id=${project}`);
  let subscription = await subscriptionOf(pushManager);
  for (let usable = true; ; usable = false) {
    if (subscription && !(usable && keyOf(subscription) === key.public_key)) {
      await timely(subscription.unsubscribe(), noPushService);
      subscription = null;
    }
    const isNew = subscription === null;
    subscription ??= await timely(makeSubscription(pushManager, key.public_key), noPushService);
    // Edge on Android makes subscriptions that can never get a push: `https://permanently-removed.invalid/…`.
    if (/\.invalid$/.test(new URL(subscription.endpoint).hostname))
      throw ownProblem("push-unavailable", "this browser has no push service", false);
    const body: IdentificationBody = {
      project_id: project,
      platform: "web",
      identifier: subscription.endpoint,
      ...(device && endpoint && endpoint !== subscription.endpoint && { previous_identifier: endpoint }),
      keys: { ...(subscription.toJSON().keys as { p256dh: string; auth: string }), vapid_key: key.public_key },
      capabilities,
      ...state.data,
    };
    const answer = await call<IdentificationAnswer>(gateway, "PUT identification", body, state.credential).catch(
      (problem: CallProblem) => {
        if (problem.slug === "token-in-use" && !isNew) return undefined;
        throw problem;
      },
    );
    const registered = {
      ...state,
      endpoint: subscription.endpoint,
      registeredAt: Date.now(),
      registeredData: registrationText(state),
    };
    if (answer && answer.data.id === device) return registered;
    if (answer?.credential)
      return { ...registered, ...newDevice(state), device: answer.data.id, credential: answer.credential };
    if (isNew) throw ownProblem("failed", "no credential");
  }
};

/** A new device has no user and no topics yet. */
const newDevice = ({ topics = {} }: State): Partial<State> => ({
  user: undefined,
  userTokenIat: undefined,
  loggingOut: false,
  topics: Object.fromEntries(
    Object.entries(topics)
      .filter(([, is]) => is !== "remove")
      .map(([name]) => [name, "add"]),
  ),
});
