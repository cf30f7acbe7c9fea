import { activeWorker, browserPermission, ofPushService, subscribeOnce, workerOf } from "./browser.ts";
import { call } from "./call.ts";
import { type CallProblem, problemOf } from "./problem.ts";
import { register, registrationText, subscriptionOf } from "./register.ts";
import { type State, writeState } from "./state.ts";
import { claimsOf } from "./user-token.ts";
import type { LoginAnswer, LoginBody } from "./wire.ts";

/** An unchanged device registers once a day, which also checks for a rotated VAPID key. */
const registerEveryMs = 86_400_000;

/** Herald no longer knows the device or its credential. */
const isUnknownDevice = ({ slug, status }: CallProblem): boolean => status === 401 || slug === "device-not-found";

export const isPending = (state: State, permission: string): boolean =>
  Boolean(
    state.leaving ||
      (state.device &&
        (state.loggingOut || state.userToken || Object.values(state.topics ?? {}).some((is) => is !== "subscribed"))) ||
      (state.wanted && permission === "granted" && !state.device),
  );

/** Without the device, which Herald is still to delete. */
export const withoutDevice = ({ gateway, project, device, credential, data, user, leaving }: State): State => ({
  ...{ gateway, project, data, user },
  leaving: device && credential ? { device, credential } : leaving,
});

type Deps = { readonly worker: string; readonly force: boolean; readonly lastToken: string | undefined };

/**
 * Sends all pending changes to Herald, and stores the state after each. A refused change is dropped, so that it does not block the
 * others. If Herald is unreachable, the remaining changes stay pending. Errors are returned as `problem`, also those of the browser.
 * `called`: whether Herald was called at all.
 */
export const settle = async (
  before: State,
  { worker, force, lastToken }: Deps,
): Promise<{ readonly state: State; readonly problem: CallProblem | null; readonly called: boolean }> => {
  let state = before;
  let problem: CallProblem | null = null;
  let called = false;
  const store = async (change: Partial<State>): Promise<void> => {
    state = await writeState({ ...state, ...change });
  };
  /** Stores the state that `work` returns, or `otherwise` if Herald refuses it. */
  const attempt = async (work: () => Promise<Partial<State>>, otherwise: Partial<State>): Promise<void> => {
    try {
      await store(await work());
    } catch (error) {
      const found = problemOf(error);
      if (found.retry || isUnknownDevice(found)) throw found;
      problem = found;
      await store(otherwise);
    }
  };
  const asDevice = <Answer>(route: string, body?: object): Promise<Answer> => {
    called = true;
    return call(state.gateway, route.replace("{id}", state.device ?? ""), body, state.credential);
  };

  const mustRegister = async (): Promise<boolean> => {
    if (!state.wanted || browserPermission() !== "granted") return false;
    const registration = await workerOf(worker);
    const subscription = registration && (await ofPushService(subscriptionOf(registration.pushManager)));
    return (
      force ||
      !state.device ||
      subscription?.endpoint !== state.endpoint ||
      registrationText(state) !== state.registeredData ||
      Date.now() - (state.registeredAt ?? 0) > registerEveryMs
    );
  };

  const once = async (): Promise<void> => {
    const { leaving } = state;
    called ||= leaving !== undefined;
    if (leaving)
      await call(state.gateway, `DELETE devices/${leaving.device}`, undefined, leaving.credential)
        .catch((found: CallProblem) => {
          if (found.retry) throw found;
        })
        .then(() => store({ leaving: undefined }));
    if (state.loggingOut) {
      if (state.device) await attempt(() => asDevice("DELETE devices/{id}/user"), {});
      await store({ loggingOut: false });
    }
    if (await mustRegister()) {
      const { device, user } = state;
      called = true;
      await store(await ofPushService(register(await activeWorker(worker), state, subscribeOnce)));
      // A new device has no user: log the user of this page in again, unless another tab logged them out.
      const isUsers = lastToken !== undefined && user === claimsOf(lastToken)?.sub;
      if (state.device !== device && isUsers && !state.userToken) await store({ userToken: lastToken });
    }
    if (!state.device) return;
    const { userToken } = state;
    if (userToken)
      await attempt(
        async () => {
          const body: LoginBody = { device: { user_token: userToken } };
          const { data } = await asDevice<LoginAnswer>("PATCH devices/{id}", body);
          const userTokenIat = claimsOf(userToken)?.iat;
          return { user: data.user_id ?? undefined, userTokenIat, userToken: undefined };
        },
        { userToken: undefined },
      );
    for (const [name, is] of Object.entries(state.topics ?? {})) {
      if (is === "subscribed") continue;
      const { [name]: _, ...others } = state.topics ?? {};
      const route = `${is === "add" ? "PUT" : "DELETE"} devices/{id}/topics/${encodeURIComponent(name)}`;
      await attempt(
        () => asDevice(route).then(() => ({ topics: is === "add" ? { ...others, [name]: "subscribed" } : others })),
        { topics: others },
      );
    }
  };

  try {
    await once().catch(async (error: unknown) => {
      const found = problemOf(error);
      // Herald keeps refusing such a subscription. A device that it has stays.
      const isRefused = found.slug === "push-unavailable" || (found.status === 422 && !state.device);
      if (isRefused) state = await writeState(withoutDevice(state));
      else if (isUnknownDevice(found)) await store({ device: undefined, credential: undefined });
      else throw error;
      await once();
      if (isRefused) throw error;
    });
  } catch (error) {
    problem = problemOf(error);
  }
  return { state, problem, called };
};
