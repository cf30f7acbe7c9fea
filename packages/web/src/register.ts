import { call } from "./call.ts";
import type { CallProblem } from "./problem.ts";
import type { State } from "./state.ts";
import type { IdentificationAnswer, IdentificationBody, WebPushKeyAnswer } from "./wire.ts";

/** The VAPID public key of a subscription, in Herald's format: base64url without padding. */
const keyOf = ({ options }: PushSubscription): string =>
  btoa(String.fromCharCode(...new Uint8Array(options.applicationServerKey ?? new ArrayBuffer(0))))
    .replaceAll("+", "-")
    .replaceAll("/", "_")
    .replace(/=+$/, "");

/** What the worker does: an older one registered without it, so a change registers the device again. */
const capabilities = ["receipts", "buttons"];

/** What the device registers with, as a text to compare. */
export const registrationText = ({ data }: State): string => JSON.stringify([data, capabilities]);

/**
 * Subscribes with the project's current key, or keeps a subscription that has this key, and registers it with Herald. Without
 * a device credential that Herald accepts, it replaces the subscription: Herald gives a credential only for a push endpoint that it has
 * not seen. Throws a Problem or an error of the browser.
 */
export const register = async ({ pushManager }: ServiceWorkerRegistration, state: State): Promise<State> => {
  const { gateway, project, device, endpoint } = state;
  const { data: key } = await call<WebPushKeyAnswer>(gateway, `GET webpush-key?project_id=${project}`);
  let subscription = await pushManager.getSubscription();
  for (let usable = device !== undefined; ; usable = false) {
    if (subscription && !(usable && keyOf(subscription) === key.public_key)) {
      await subscription.unsubscribe();
      subscription = null;
    }
    const isNew = subscription === null;
    subscription ??= await pushManager.subscribe({ userVisibleOnly: true, applicationServerKey: key.public_key });
    const { p256dh = "", auth = "" } = subscription.toJSON().keys ?? {};
    const body: IdentificationBody = {
      project_id: project,
      platform: "web",
      identifier: subscription.endpoint,
      ...(device && endpoint && endpoint !== subscription.endpoint && { previous_identifier: endpoint }),
      keys: { p256dh, auth, vapid_key: key.public_key },
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
    if (isNew) throw { slug: "failed", message: "no credential", retry: true, status: 0 } satisfies CallProblem;
  }
};

/** A new device has no user and no topics yet. */
const newDevice = ({ topics = {} }: State): Partial<State> => ({
  user: undefined,
  userTokenIat: undefined,
  loggingOut: false,
  topics: Object.fromEntries(
    Object.entries(topics).flatMap(([name, is]) => (is === "remove" ? [] : [[name, "add" as const]])),
  ),
});
