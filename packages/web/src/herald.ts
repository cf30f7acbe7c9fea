import {
  askForPermission,
  browserPermission,
  closeShown,
  endSubscription,
  isSupported,
  takeOpenFromAddress,
} from "./browser.ts";
import { getPreferences, type KindChoices, setPreferences } from "./preferences.ts";
import { type CallProblem, ownProblem, problemOf } from "./problem.ts";
import { sendReports } from "./reports.ts";
import { isPending, settle, withoutDevice } from "./settle.ts";
import { addReport, exclusively, markLoggedOut, readState, type State, unmarkLoggedOut, writeState } from "./state.ts";
import { timely } from "./timely.ts";
import { claimsOf } from "./user-token.ts";
import type { PushPayload } from "./wire.ts";

export type HeraldOptions = {
  /** The gateway's address: `https://push.example.com`. */
  readonly gateway: string;
  /** The project's id, `prj_…`. */
  readonly project: string;
  /** The address of `herald-worker.js`, or of your own worker that imports it. Default: `/herald-worker.js`. */
  readonly worker?: string;
  /** Stored with the device, for targets such as `metadata:plan=pro`. Herald ignores values that the project protects. */
  readonly metadata?: Readonly<Record<string, unknown>>;
  /** Additional identifiers. The kit always sends `current_locale` and `current_time_zone`. */
  readonly identifiers?: Readonly<Record<string, unknown>>;
  /** Called after every method but those of `preferences`, also where Web Push is unsupported, and after every change in another tab. */
  readonly onChange?: (status: PushStatus) => void;
  /** Called when a push arrives while the page is open. The worker shows the push too, unless it is silent. */
  readonly onPush?: (payload: PushPayload) => void;
};

export type PushStatus = {
  /** `unsupported`: the browser lacks Web Push, the page is not HTTPS, or, on iOS, the site is not on the home screen. */
  readonly permission: "default" | "granted" | "denied" | "unsupported";
  /** Pushes reach this browser. */
  readonly subscribed: boolean;
  /** The id that Herald gave the device. */
  readonly device: string | null;
  /** The id of the logged-in user, once Herald has confirmed it. */
  readonly user: string | null;
  /** Names of the topics that the device is subscribed to. */
  readonly topics: readonly string[];
  /** A change has not reached Herald yet. The kit keeps it and retries. */
  readonly pending: boolean;
  /** Why the last call failed, or has not ended yet; null if it succeeded. */
  readonly problem: CallProblem | null;
};

/** No method rejects: errors are in `problem`. Each resolves, also where the browser or another tab never answers. */
export type Herald = {
  /**
   * Call it when a page loads: renews the subscription if needed, and sends pending changes. If a click on a notification of Safari opened
   * the page, reports the open and removes it from the address. Never asks for permission.
   */
  readonly start: () => Promise<PushStatus>;
  /**
   * Call it from a click: asks for permission if it is neither granted nor denied yet, and subscribes. A question that is left open for a
   * minute stays open, and subscribes when it is answered.
   */
  readonly subscribe: () => Promise<PushStatus>;
  /** Deletes the device at Herald. */
  readonly unsubscribe: () => Promise<PushStatus>;
  /** Assigns the device to a user, by a user token from your backend. Another user is logged out first. */
  readonly login: (userToken: string) => Promise<PushStatus>;
  /** Logs the user out. From this call on pushes that were sent to the user are not shown. */
  readonly logout: () => Promise<PushStatus>;
  readonly topics: {
    readonly add: (name: string) => Promise<PushStatus>;
    readonly remove: (name: string) => Promise<PushStatus>;
  };
  /** Which kinds of notifications the device gets. Nothing is kept while Herald cannot be reached: `problem` says so. */
  readonly preferences: {
    readonly get: () => Promise<KindChoices>;
    /** Switches kinds on or off, such as `{ offers: false }`; the others stay. */
    readonly set: (kinds: Readonly<Record<string, boolean>>) => Promise<KindChoices>;
  };
};

const firstRetryMs = 30_000;
const longestRetryMs = 3_600_000;
const longestRetryAfterMs = 86_400_000;

/** Longer than a call of Herald: another tab may be within one. */
const busyMs = 30_000;

const known = (): Promise<State | undefined> => readState().catch(() => undefined);

/** Connects a page to Herald. Asks, registers and sends nothing until a method is called. */
export const createHerald = (options: HeraldOptions): Herald => {
  const { project, worker = "/herald-worker.js", onChange, onPush } = options;
  const gateway = options.gateway.replace(/\/+$/, "");
  const others = isSupported() ? new BroadcastChannel("herald") : undefined;
  let lastToken: string | undefined;
  let retry: ReturnType<typeof setTimeout> | undefined;
  /** Attempts of this page since the last one that Herald answered. */
  let failures = 0;
  /** Of the last call of this page. */
  let problem: CallProblem | null = null;

  const load = async (): Promise<State> => {
    const stored = await readState();
    const identifiers = {
      current_locale: navigator.language,
      current_time_zone: Intl.DateTimeFormat().resolvedOptions().timeZone,
      ...options.identifiers,
    };
    const own = { gateway, project, data: { identifiers, ...(options.metadata && { metadata: options.metadata }) } };
    return stored?.project === project ? { ...stored, ...own } : own;
  };

  const statusOf = (state: State | undefined, found = problem): PushStatus => {
    const permission = browserPermission();
    const { device, user, topics = {} } = state ?? {};
    return {
      permission,
      subscribed: permission === "granted" && device !== undefined && !state?.loggingOut,
      device: device ?? null,
      user: (device && user) ?? null,
      topics: Object.keys(topics).filter((name) => topics[name] === "subscribed"),
      pending: state !== undefined && isPending(state, permission),
      problem: found,
    };
  };

  /** Resolves to the status. An error of the app's function stays the app's. */
  const emit = (status: PushStatus): PushStatus => {
    queueMicrotask(() => onChange?.(status));
    return status;
  };

  const refuse = async (slug: string, message: string): Promise<PushStatus> =>
    emit(statusOf(await known(), ownProblem(slug, message, false)));

  /** Without a Retry-After a random time, so that browsers do not all call at the moment at which Herald is available again. */
  const retryLater = (problem: CallProblem | null, again: () => unknown): void => {
    clearTimeout(retry);
    failures = problem?.retry ? failures + 1 : 0;
    if (!problem?.retry) return;
    const longest = Math.min(firstRetryMs * 2 ** (failures - 1), longestRetryMs);
    retry = setTimeout(again, Math.min(problem.retryAfterMs ?? 0, longestRetryAfterMs) + Math.random() * longest);
  };

  /** Stores the changed state, then sends it to Herald. `force`: registers the device even if nothing has changed. */
  const run = (change: (state: State) => State | Promise<State>, force = false): Promise<PushStatus> => {
    if (!isSupported()) return Promise.resolve(emit(statusOf(undefined)));
    let isStored = false;
    const settled = exclusively(async () => {
      const before = await load();
      try {
        const wanted = await writeState(await change(before));
        isStored = true;
        if (before.loggingOut) await unmarkLoggedOut();
        return await settle(wanted, { worker, force, lastToken });
      } catch (error) {
        return { state: before, problem: problemOf(error), called: true };
      }
    });
    type Settled = { readonly state?: State; readonly problem: CallProblem | null; readonly called: boolean };
    const finish = async ({ state, problem: found, called }: Settled) => {
      // What fails stays stored.
      const failed = found?.retry ? found : ((await sendReports().catch(problemOf)) ?? found);
      retryLater(failed, isStored ? start : () => run(change, force));
      others?.postMessage("changed");
      // Nothing was sent, so what Herald refused last is still true, and this page may not have shown it yet.
      if (failed || called || problem?.retry) problem = failed;
      // Another tab may have changed it since.
      return emit(statusOf((await known()) ?? state));
    };
    const finished = settled.catch((error: unknown) => ({ problem: problemOf(error), called: true })).then(finish);
    // It goes on, and `onChange` gets its end.
    return timely(finished, "busy", undefined, busyMs).catch(async (busy) => emit(statusOf(await known(), busy)));
  };

  const start = async () => {
    const opened = takeOpenFromAddress(project);
    if (opened) await addReport(opened).catch(() => undefined);
    return run((state) => state);
  };

  /** Unsubscribes if the current user is not `next`: the push service then drops pushes that it has not delivered. */
  const leave = async (next?: string): Promise<void> => {
    const { user, userToken } = (await known()) ?? {};
    const current = user ?? (userToken && claimsOf(userToken)?.sub);
    if (current === undefined || current === next) return;
    await markLoggedOut();
    await Promise.allSettled([closeShown(worker), endSubscription(worker)]);
  };

  const changeTopic = (name: string, is: "add" | "remove") =>
    run((state) =>
      is === "add" && state.topics?.[name] === "subscribed"
        ? state
        : { ...state, topics: { ...state.topics, [name]: is } },
    );

  if (others) {
    others.onmessage = async () => emit(statusOf(await known()));
    addEventListener("online", () => void start());
    navigator.serviceWorker.addEventListener("message", ({ data }) => {
      if (data?.herald === "push") onPush?.(data.payload);
    });
    // After a refusal users can grant permission only in the browser's settings.
    navigator.permissions
      ?.query({ name: "notifications" })
      .then((found) => found.addEventListener("change", () => void start()))
      .catch(() => undefined);
  }

  return {
    start,
    subscribe: async () => {
      if (browserPermission() === "default") {
        // Browsers penalise sites that ask for permission without a click.
        if (navigator.userActivation?.isActive === false) return refuse("needs-click", "call subscribe() from a click");
        await askForPermission(start);
      }
      return run((state) => ({ ...state, wanted: true }), true);
    },
    unsubscribe: () =>
      run(async (before) => {
        const state = await writeState(withoutDevice(before));
        // Herald deletes the device, whether the browser answers or not.
        await endSubscription(worker).catch(() => undefined);
        return state;
      }),
    login: async (userToken) => {
      const claims = claimsOf(userToken);
      if (!claims) return refuse("user-token-invalid", "the user token is no JWT");
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
    preferences: { get: getPreferences, set: setPreferences },
  };
};
