/**
 * A device at Herald, for React Native on iOS and Android. Copy it: it needs only `fetch`. `push.tsx` beside it connects it to Firebase
 * Messaging.
 *
 * Every call stores a change and then sends it to Herald. Changes that cannot be sent now are sent by the next call or by `settle()`.
 */

/** `react-native-keychain`, `expo-secure-store` or the like: the credential acts for this device. */
export type Storage = {
  getItem(key: string): Promise<string | null>;
  setItem(key: string, value: string): Promise<void>;
};

/** The data of a push for the app: beside `aps` on iOS, as data on Android. */
export type PushData = { notification_id?: unknown; project_id?: unknown; token?: unknown; link_to?: unknown };

type Open = { notification: string; project: string; token: string };
type State = {
  pushToken?: string;
  /** Whether the device must register. */
  due?: boolean;
  /** The push token that was last registered. */
  registered?: string | undefined;
  device?: string | undefined;
  credential?: string | undefined;
  /** The user token of a pending login, and whether a log-out is pending. */
  userToken?: string | undefined;
  loggingOut?: boolean;
  topics: Record<string, "subscribed" | "add" | "remove">;
  opens: Open[];
};

type Options = {
  gateway: string;
  project: string;
  platform: "ios" | "android";
  /** `fcm` if an iPhone has a push token of FCM. Default: the platform's own provider. */
  provider?: "fcm" | undefined;
  locale: string;
  storage: Storage;
};

class Refused extends Error {
  readonly status: number;
  readonly errors: string[];
  constructor(status: number, errors: string[]) {
    super(errors.join("; "));
    this.status = status;
    this.errors = errors;
  }
}

/** False for no answer, 429 and 5xx, which are worth a retry. Herald would refuse other requests again. */
const isRefusal = (error: unknown): error is Refused =>
  error instanceof Refused && error.status < 500 && error.status !== 429;

const maxOpens = 100;

export class Herald {
  private last: Promise<unknown> = Promise.resolve();
  private readonly options: Options;
  constructor(options: Options) {
    this.options = options;
  }

  /** Call it at every start, and when the platform issues a new push token. */
  register(pushToken: string): Promise<string[]> {
    return this.run((state) => ({ ...state, pushToken, due: true }));
  }

  /** `userToken`: a JWT from your backend. */
  login(userToken: string): Promise<string[]> {
    return this.run((state) => ({ ...state, userToken }));
  }

  /** Afterwards delete the push token if the platform can (`messaging().deleteToken()`), so that pushes in transit do not arrive. */
  logout(): Promise<string[]> {
    return this.run((state) => ({ ...state, userToken: undefined, loggingOut: true }));
  }

  subscribe(topic: string): Promise<string[]> {
    return this.run((state) => ({ ...state, topics: { ...state.topics, [topic]: "add" } }));
  }

  unsubscribe(topic: string): Promise<string[]> {
    return this.run((state) => ({ ...state, topics: { ...state.topics, [topic]: "remove" } }));
  }

  /** Call it when the user opens the notification with this data. */
  opened({ notification_id, project_id, token }: PushData): Promise<string[]> {
    if (typeof notification_id !== "string" || typeof project_id !== "string" || typeof token !== "string")
      return Promise.resolve([]);
    const open = { notification: notification_id, project: project_id, token };
    return this.run((state) => ({ ...state, opens: [...state.opens, open].slice(-maxOpens) }));
  }

  /** Sends pending changes. Call it when the app starts and when the network is back. Resolves to the reasons of refusals. */
  settle(): Promise<string[]> {
    return this.run((state) => state);
  }

  /** Runs one call after another, so that no call overwrites the changes of another. */
  private run(change: (state: State) => State): Promise<string[]> {
    const work = this.last.then(async () => {
      const refused: string[] = [];
      let state = await this.write(change(await this.read()));
      try {
        state = await this.sync(state, refused);
      } catch (error) {
        if (!isRefusal(error) || error.status !== 401) return refused;
        // Herald no longer knows the device, so it registers as a new one.
        state = await this.write({ ...(await this.read()), device: undefined, credential: undefined, due: true });
        await this.sync(state, refused).catch(() => undefined);
      }
      return refused;
    });
    this.last = work.catch(() => undefined);
    return work;
  }

  private async sync(before: State, refused: string[]): Promise<State> {
    let state = before;
    const store = async (change: Partial<State>) => {
      state = await this.write({ ...state, ...change });
    };
    /** False if Herald refuses the request, as it would refuse a retry. */
    const attempt = (work: () => Promise<unknown>): Promise<boolean> =>
      work().then(
        () => true,
        (error: unknown) => {
          if (!isRefusal(error) || error.status === 401) throw error;
          refused.push(...error.errors);
          return false;
        },
      );

    for (const open of state.opens) {
      const body = { project_id: open.project, token: open.token };
      await attempt(() => this.call("PUT", `/notifications/${open.notification}/open`, body));
      await store({ opens: state.opens.slice(1) });
    }
    if (state.loggingOut) {
      if (state.device)
        await attempt(() => this.call("DELETE", `/devices/${state.device}/user`, undefined, state.credential));
      await store({ loggingOut: false });
    }
    if (state.pushToken && state.due) {
      const { project, platform, provider, locale } = this.options;
      const body = {
        project_id: project,
        platform,
        ...(provider && { provider }),
        identifier: state.pushToken,
        // With the credential this keeps the device.
        ...(state.registered && state.registered !== state.pushToken && { previous_identifier: state.registered }),
        identifiers: {
          current_locale: locale,
          current_time_zone: Intl.DateTimeFormat().resolvedOptions().timeZone,
        },
      };
      const answer = await this.call("PUT", "/identification", body, state.credential);
      // Only a new device, which has no topics yet, gets a credential. A lost credential cannot be recovered.
      if (!answer.credential && !state.credential)
        refused.push("the push token is known and its credential is lost: delete the token, and register the next one");
      const topics = Object.entries(state.topics).flatMap(([name, is]) => (is === "remove" ? [] : [[name, "add"]]));
      await store({
        due: false,
        registered: state.pushToken,
        device: answer.data.id,
        ...(answer.credential && { credential: answer.credential, topics: Object.fromEntries(topics) }),
      });
    }
    const { device, credential, userToken } = state;
    if (!device || !credential) return state;
    if (userToken) {
      await attempt(() => this.call("PATCH", `/devices/${device}`, { device: { user_token: userToken } }, credential));
      await store({ userToken: undefined });
    }
    for (const [name, is] of Object.entries(state.topics)) {
      if (is === "subscribed") continue;
      const { [name]: _, ...others } = state.topics;
      const path = `/devices/${device}/topics/${encodeURIComponent(name)}`;
      const taken =
        is === "add"
          ? await attempt(() => this.call("PUT", path, undefined, credential))
          : await attempt(() => this.call("DELETE", path, undefined, credential));
      await store({ topics: taken && is === "add" ? { ...others, [name]: "subscribed" } : others });
    }
    return state;
  }

  // biome-ignore lint/suspicious/noExplicitAny: the few fields that are read stand above
  private async call(method: string, path: string, body?: unknown, credential?: string): Promise<any> {
    const response = await fetch(`${this.options.gateway}/api/v1${path}`, {
      method,
      headers: {
        ...(body !== undefined && { "content-type": "application/json" }),
        ...(credential && { authorization: `Bearer ${credential}` }),
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    const answer = text ? JSON.parse(text) : undefined;
    if (!response.ok) throw new Refused(response.status, answer?.errors ?? [`Herald answered ${response.status}`]);
    return answer;
  }

  private async read(): Promise<State> {
    const text = await this.options.storage.getItem("herald");
    return { topics: {}, opens: [], ...(text ? JSON.parse(text) : {}) };
  }

  private async write(state: State): Promise<State> {
    await this.options.storage.setItem("herald", JSON.stringify(state));
    return state;
  }
}
