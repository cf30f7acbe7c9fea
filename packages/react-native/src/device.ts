import { callHerald, deviceProblem, type Problem } from "./call.ts";
import { choose } from "./preferences.ts";
import {
  type DeviceReport,
  type DeviceSecrets,
  emptyState,
  type KitState,
  type ReportKind,
  readStored,
  reportAgeMs,
  type Store,
  withReport,
} from "./state.ts";
import type { Herald, KindChoices, PushPayload, PushStatus } from "./types.ts";

export type DeviceOptions = {
  readonly gateway: string;
  readonly project: string;
  /** For the device's id and credential. */
  readonly secrets: Store;
  /** For everything else. */
  readonly store: Store;
  /** What the device registers with beside its token. */
  readonly data: () => Readonly<Record<string, unknown>>;
  readonly onChange?: ((status: PushStatus) => void) | undefined;
  /** Gets another push token from the platform, if it can. */
  readonly replacePushToken?: () => void;
  /** ms since 1970. */
  readonly now?: () => number;
};

const registerEveryMs = 86_400_000;
const maxBlockedMs = 86_400_000;

/** 30 s, doubled with each failure, at most an hour. The wait is a random part of it. */
export const longestRetryMs = (failures: number): number => Math.min(30_000 * 2 ** (failures - 1), 3_600_000);

const isUnknownDevice = ({ status, slug }: Problem): boolean => status === 401 || slug === "device-not-found";

const asProblem = (error: unknown): Problem =>
  typeof error === "object" && error !== null && "slug" in error
    ? (error as Problem)
    : deviceProblem("failed", String(error));

/** A device at Herald, by HTTP. Every call stores what is wanted, and then sends it. One call runs at a time. */
export const createDevice = (options: DeviceOptions): Herald => {
  const { project, secrets: secretStore, store, now = Date.now } = options;
  const gateway = options.gateway.replace(/\/+$/, "");
  let state: KitState = emptyState;
  let secrets: DeviceSecrets = {};
  let loading: Promise<void> | undefined;
  let last: Promise<unknown> = Promise.resolve();
  let problem: Problem | null = null;
  /** Whether the present pass has called Herald. */
  let called = false;
  /** User tokens are never stored. */
  let userToken: string | undefined;
  let lastUserToken: string | undefined;
  let timer: ReturnType<typeof setTimeout> | undefined;

  const load = async () => {
    state = await readStored(store, emptyState);
    secrets = await readStored(secretStore, {});
  };
  const save = async (change: Partial<KitState>) => {
    state = { ...state, ...change };
    await store.set(JSON.stringify(state));
  };
  const saveSecrets = async (next: DeviceSecrets) => {
    secrets = next;
    await secretStore.set(JSON.stringify(next));
  };
  const call = <Answer>(route: string, body?: unknown, credential?: string) => {
    called = true;
    return callHerald<Answer>(gateway, route, body, credential);
  };
  const asDevice = <Answer>(method: string, path: string, body?: unknown) =>
    call<Answer>(`${method} devices/${secrets.device}${path}`, body, secrets.credential);

  /** False if Herald refuses the change, as it would refuse a retry. */
  const attempt = async (work: () => Promise<unknown>): Promise<boolean> => {
    try {
      await work();
      return true;
    } catch (error) {
      const found = asProblem(error);
      if (found.retry || isUnknownDevice(found)) throw found;
      problem = found;
      return false;
    }
  };

  const sendReports = async () => {
    for (const report of state.reports) {
      const { kind, notification, token, button } = report;
      const ago = Math.max(Math.floor((now() - report.at) / 1_000), 0);
      const body = { project_id: report.project, token, ...(ago > 0 && { ago }), ...(button && { button }) };
      // A report needs no credential, so a refusal says nothing about the device.
      if (ago * 1_000 < reportAgeMs)
        await call(`PUT notifications/${notification}/${kind}`, body).catch((error) => {
          problem = asProblem(error);
          if (problem.retry) throw problem;
        });
      await save({ reports: state.reports.filter((one) => one !== report) });
    }
  };

  const register = async () => {
    const { pushToken, registered, registeredData, registeredAt = 0 } = state;
    if (pushToken === undefined) return;
    const data = options.data();
    const age = now() - registeredAt;
    const isKnown = secrets.credential !== undefined && registered === pushToken;
    if (isKnown && registeredData === JSON.stringify(data) && age >= 0 && age < registerEveryMs) return;
    const body = {
      project_id: project,
      identifier: pushToken,
      // With the credential this keeps the device.
      ...(registered && registered !== pushToken && { previous_identifier: registered }),
      ...data,
    };
    type Answer = { data: { id: string }; credential?: string };
    const answer = await call<Answer>("PUT identification", body, secrets.credential);
    const device = answer.data.id;
    const isSame = device === secrets.device;
    const credential = answer.credential ?? (isSame ? secrets.credential : undefined);
    if (!credential) {
      const message = "The push token is registered and its credential is lost: register another push token";
      options.replacePushToken?.();
      throw deviceProblem("credential-lost", message, 409);
    }
    await saveSecrets({ device, credential });
    // A new device has no user and no topics yet.
    const wanted = Object.entries(state.topics).flatMap(([name, is]) => (is === "remove" ? [] : [[name, "add"]]));
    await save({
      registered: pushToken,
      registeredData: JSON.stringify(data),
      registeredAt: now(),
      ...(!isSame && { user: undefined, topics: Object.fromEntries(wanted) }),
    });
    if (!isSame) userToken ??= lastUserToken;
  };

  const logIn = async () => {
    const token = userToken;
    if (token === undefined || !secrets.credential) return;
    await attempt(async () => {
      type Answer = { data: { user_id: string | null } };
      const { data } = await asDevice<Answer>("PATCH", "", { device: { user_token: token } });
      lastUserToken = token;
      await save({ user: data.user_id ?? undefined });
    });
    userToken = undefined;
  };

  const changeTopics = async () => {
    if (!secrets.credential) return;
    for (const [name, is] of Object.entries(state.topics)) {
      if (is === "subscribed") continue;
      const isTaken = await attempt(() =>
        asDevice(is === "add" ? "PUT" : "DELETE", `/topics/${encodeURIComponent(name)}`),
      );
      const { [name]: _, ...others } = state.topics;
      await save({ topics: isTaken && is === "add" ? { ...others, [name]: "subscribed" } : others });
    }
  };

  const sendAll = async () => {
    await sendReports();
    if (state.loggingOut) {
      if (secrets.credential) await attempt(() => asDevice("DELETE", "/user"));
      await save({ loggingOut: false, user: undefined });
    }
    await register();
    await logIn();
    await changeTopics();
  };

  /** After this time and a random one, so that phones do not all call at the moment at which Herald is available again. */
  const settleIn = (ms: number) => {
    clearTimeout(timer);
    timer = setTimeout(settle, ms + Math.random() * longestRetryMs(state.failures));
  };

  /** Milliseconds that Herald asked to wait; 0 if the kit may call. */
  const blockedMs = (): number => {
    const left = state.blockedUntil - now();
    // A time further away comes from a clock that was changed.
    return left > 0 && left <= maxBlockedMs ? left : 0;
  };

  /** If Herald no longer knows the device, registers it as a new one and does the work again. */
  const asKnownDevice = <Value>(work: () => Promise<Value>): Promise<Value> =>
    work().catch(async (error) => {
      if (!isUnknownDevice(asProblem(error))) throw error;
      await saveSecrets({});
      await sendAll();
      return work();
    });

  const settleOnce = async () => {
    const blocked = blockedMs();
    if (blocked > 0) {
      settleIn(blocked);
      return;
    }
    // A pass without a call keeps the refusal: the app may have become active since.
    const refused = problem?.retry === false ? problem : null;
    problem = null;
    called = false;
    try {
      await asKnownDevice(sendAll);
      if (!called) problem = refused;
      if (state.failures > 0) await save({ failures: 0, blockedUntil: 0 });
    } catch (error) {
      problem = asProblem(error);
      if (!problem.retry) return;
      const { retryAfterMs } = problem;
      const failures = state.failures + 1;
      await save({ failures, blockedUntil: retryAfterMs > 0 ? now() + retryAfterMs : 0 });
      settleIn(retryAfterMs);
    }
  };

  const status = (): PushStatus => {
    const { pushToken, registered, topics } = state;
    const isRegistered = pushToken === undefined || (secrets.credential !== undefined && registered === pushToken);
    const changes = Object.values(topics).some((is) => is !== "subscribed");
    const isPending =
      changes || !isRegistered || state.loggingOut || userToken !== undefined || state.reports.length > 0;
    return {
      device: secrets.device ?? null,
      user: state.user ?? null,
      topics: Object.keys(topics).filter((name) => topics[name] === "subscribed"),
      pending: Boolean(isPending),
      problem,
    };
  };

  /** What is pending goes first, such as the registration. */
  const choices = (changed: Readonly<Record<string, boolean>>): Promise<KindChoices> => {
    void settle();
    const work = last.then(async (): Promise<KindChoices> => {
      try {
        const blocked = blockedMs();
        if (blocked > 0)
          throw deviceProblem("retry-later", `Herald asked to wait: try again in ${Math.ceil(blocked / 1_000)} s`);
        return {
          kinds: await asKnownDevice(() => choose(secrets.credential ? asDevice : undefined, changed)),
          problem: null,
        };
      } catch (error) {
        const { retryAfterMs, ...found } = asProblem(error);
        if (retryAfterMs > 0) await save({ blockedUntil: now() + retryAfterMs }).catch(() => undefined);
        return { kinds: [], problem: found };
      }
    });
    last = work;
    return work;
  };

  const loaded = (): Promise<void> => {
    loading ??= load();
    return loading;
  };

  const run = (change: (state: KitState) => Partial<KitState>): Promise<PushStatus> => {
    const work = last.then(async () => {
      try {
        await loaded();
        const changed = change(state);
        if (Object.keys(changed).length > 0) await save(changed);
        await settleOnce();
      } catch (error) {
        problem = asProblem(error);
      }
      const result = status();
      options.onChange?.(result);
      return result;
    });
    last = work.catch(() => undefined);
    return work;
  };

  const settle = () => run(() => ({}));
  const report = (
    kind: ReportKind,
    { notification_id: notification, project_id: ofProject, token }: PushPayload,
    button?: string,
  ) => {
    if (typeof notification !== "string" || typeof ofProject !== "string" || typeof token !== "string") return settle();
    const one: DeviceReport = { kind, notification, project: ofProject, token, at: now(), ...(button && { button }) };
    return run((before) => withReport(before, one));
  };
  const changeTopic = (name: string, is: "add" | "remove") =>
    run(({ topics }) => (is === "add" && topics[name] === "subscribed" ? {} : { topics: { ...topics, [name]: is } }));

  return {
    register: (pushToken) => run(() => ({ pushToken })),
    login: (token) =>
      run(() => {
        userToken = token;
        return {};
      }),
    logout: () =>
      run(() => {
        userToken = undefined;
        lastUserToken = undefined;
        return { loggingOut: secrets.device !== undefined, user: undefined };
      }),
    topics: { add: (name) => changeTopic(name, "add"), remove: (name) => changeTopic(name, "remove") },
    preferences: { get: () => choices({}), set: choices },
    credential: () => loaded().then(() => secrets.credential ?? null),
    received: (push) => report("received", push),
    dismissed: (push) => report("dismissed", push),
    open: (push, button) => report("open", push, button),
    settle,
  };
};
