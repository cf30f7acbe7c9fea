import { browserPermission, closeShown, isSupported, workerOf } from "./browser.ts";
import type { Problem } from "./call.ts";
import { isPending, problemOf, settle } from "./settle.ts";
import { exclusively, markLoggedOut, readState, type State, unmarkLoggedOut, writeState } from "./state.ts";
import { claimsOf } from "./user-token.ts";
import type { PushPayload } from "./wire.ts";

export type HeraldOptions = {
  /** Where Herald answers: `https://push.example.com`. */
  readonly gateway: string;
  /** The project's id, `prj_…`. */
  readonly project: string;
  /** The address of `herald-worker.js`, or of your own worker that imports it. Default: `/herald-worker.js`. */
  readonly worker?: string;
  /** Kept with the device, for targets such as `metadata:plan=pro`. Values that the project protects are left out. */
  readonly metadata?: Readonly<Record<string, unknown>>;
  /** Beside `current_locale` and `time_zone`, which the kit sends by itself. */
  readonly identifiers?: Readonly<Record<string, unknown>>;
  /** After every change, in every open tab. */
  readonly onChange?: (status: Status) => void;
  /** A push arrived while the page is open; the worker has shown it unless it is silent. */
  readonly onPush?: (payload: PushPayload) => void;
};

export type Status = {
  /** `unsupported`: not in this browser, without HTTPS, or on iOS before the site is on the home screen. */
  readonly permission: "default" | "granted" | "denied" | "unsupported";
  /** Pushes reach this browser. */
  readonly subscribed: boolean;
  /** The device's id at Herald. */
  readonly device: string | null;
  /** Who is logged in, as Herald has confirmed. */
  readonly user: string | null;
  /** Names of the topics that it is subscribed to. */
  readonly topics: readonly string[];
  /** Something is not told to Herald yet. It is kept, and tried again. */
  readonly pending: boolean;
  /** Why the last call did not do what it was asked to; null when it did. */
  readonly problem: Problem | null;
};

/** No method rejects: what went wrong is in `problem`. */
export type Herald = {
  /** Call it when a page loads: subscribes again where that is needed, and tells Herald what is pending. Never asks for permission. */
  readonly start: () => Promise<Status>;
  /** Call it from a click: asks for permission where the browser has none yet, and subscribes. */
  readonly subscribe: () => Promise<Status>;
  /** Deletes the device at Herald. */
  readonly unsubscribe: () => Promise<Status>;
  /** Says whose device this is, by a user token from your backend. Another user is logged out first. */
  readonly login: (userToken: string) => Promise<Status>;
  /** From its call on nothing is shown that was sent to the user who was logged in. */
  readonly logout: () => Promise<Status>;
  readonly topics: {
    readonly add: (name: string) => Promise<Status>;
    readonly remove: (name: string) => Promise<Status>;
  };
};

/** Spread, so that a Herald that comes back is not called by all at once. */
const retryAfterMs = () => 30_000 * (1 + Math.random());

const refusal = (slug: string, message: string): Problem => ({ slug, message, retry: false, status: 0 });

const known = (): Promise<State | undefined> => readState().catch(() => undefined);

/** Connects a page to Herald. Nothing is asked, registered or sent before a method is called. */
export const createHerald = (options: HeraldOptions): Herald => {
  const { project, worker = "/herald-worker.js", onChange, onPush } = options;
  const gateway = options.gateway.replace(/\/+$/, "");
  const others = new BroadcastChannel("herald");
  let lastToken: string | undefined;
  let retry: ReturnType<typeof setTimeout> | undefined;

  const load = async (): Promise<State> => {
    const stored = await readState();
    const identifiers = {
      current_locale: navigator.language,
      time_zone: Intl.DateTimeFormat().resolvedOptions().timeZone,
      ...options.identifiers,
    };
    const own = { gateway, project, data: { identifiers, ...(options.metadata && { metadata: options.metadata }) } };
    return stored?.project === project ? { ...stored, ...own } : own;
  };

  const statusOf = (state: State | undefined, problem: Problem | null): Status => {
    const permission = browserPermission();
    const { device, user, topics = {} } = state ?? {};
    return {
      permission,
      subscribed: permission === "granted" && device !== undefined && !state?.loggingOut,
      device: device ?? null,
      user: (device && user) ?? null,
      topics: Object.keys(topics).filter((name) => topics[name] === "subscribed"),
      pending: state !== undefined && isPending(state, permission),
      problem,
    };
  };

  /** Changes what is wanted, then makes it so. `force`: looks even where nothing seems to be due. */
  const run = async (change: (state: State) => State | Promise<State>, force = false): Promise<Status> => {
    if (!isSupported()) return statusOf(undefined, null);
    let problem: Problem | null = null;
    const state = await exclusively(async () => {
      const before = await load();
      try {
        const wanted = await writeState(await change(before));
        if (before.loggingOut) await unmarkLoggedOut();
        const settled = await settle(wanted, { worker, force, lastToken });
        problem = settled.problem;
        return settled.state;
      } catch (error) {
        problem = problemOf(error);
        return readState().catch(() => before);
      }
    }).catch((error: unknown) => {
      problem = problemOf(error);
      return undefined;
    });
    const status = statusOf(state, problem);
    clearTimeout(retry);
    if (status.pending) retry = setTimeout(start, retryAfterMs());
    others.postMessage("changed");
    onChange?.(status);
    return status;
  };

  const start = () => run((state) => state);

  /** Ends the subscription of a user who is not `next`: the browser drops what the push service still has for it. */
  const leave = async (next?: string): Promise<void> => {
    const { user, userToken } = (await known()) ?? {};
    const current = user ?? (userToken && claimsOf(userToken)?.sub);
    if (current === undefined || current === next) return;
    await markLoggedOut();
    const registration = await workerOf(worker);
    await (await registration?.pushManager.getSubscription())?.unsubscribe();
    await closeShown(registration);
  };

  const changeTopic = (name: string, is: "add" | "remove") =>
    run((state) =>
      is === "add" && state.topics?.[name] === "subscribed"
        ? state
        : { ...state, topics: { ...state.topics, [name]: is } },
    );

  if (isSupported()) {
    addEventListener("online", () => void start());
    others.onmessage = async () => onChange?.(statusOf(await known(), null));
    navigator.serviceWorker.addEventListener("message", ({ data }) => {
      if (data?.herald === "push") onPush?.(data.payload);
    });
    // A person who refused and thinks again does so in the browser's settings.
    navigator.permissions
      ?.query({ name: "notifications" })
      .then((found) => found.addEventListener("change", () => void start()))
      .catch(() => undefined);
  }

  return {
    start,
    subscribe: async () => {
      if (browserPermission() === "default") {
        // Browsers hold a question against a site that asks when a page loads.
        if (navigator.userActivation?.isActive === false)
          return statusOf(await known(), refusal("needs-click", "call subscribe() from a click"));
        await Notification.requestPermission();
      }
      return run((state) => ({ ...state, wanted: true }), true);
    },
    unsubscribe: () =>
      run(async ({ device, credential, data, user }) => {
        const leaving = device && credential ? { device, credential } : undefined;
        const state = await writeState({ gateway, project, data, leaving, user });
        const registration = await workerOf(worker);
        await (await registration?.pushManager.getSubscription())?.unsubscribe();
        return state;
      }),
    login: async (userToken) => {
      const claims = claimsOf(userToken);
      if (!claims) return statusOf(await known(), refusal("user-token-invalid", "the user token is no JWT"));
      lastToken = userToken;
      const { sub, iat } = claims;
      await leave(sub).catch(() => undefined);
      return run((state) =>
        state.user === sub && state.userTokenIat === iat ? { ...state, userToken: undefined } : { ...state, userToken },
      );
    },
    logout: async () => {
      lastToken = undefined;
      await leave().catch(() => undefined);
      return start();
    },
    topics: { add: (name) => changeTopic(name, "add"), remove: (name) => changeTopic(name, "remove") },
  };
};
