/**
 * A device at Herald, for React Native on iOS and Android. Copy it: it depends on nothing, `fetch` is there. `push.tsx` beside it connects it
 * to Firebase Messaging.
 *
 * Every call stores what is wanted and then tells Herald; what cannot be told now is told by the next call, or by `settle()`.
 */

/** `react-native-keychain`, `expo-secure-store` or the like: the credential acts for this device. */
export type Storage = {
  getItem(key: string): Promise<string | null>;
  setItem(key: string, value: string): Promise<void>;
};

/** What a push carries for the app, on iOS beside `aps`, on Android as its data. */
export type PushData = { notification_id?: unknown; project_id?: unknown; token?: unknown; link_to?: unknown };

type Open = { notification: string; project: string; token: string };
type State = {
  pushToken?: string;
  /** It is to be registered. */
  due?: boolean;
  /** The push token that Herald was last told of. */
  registered?: string | undefined;
  device?: string | undefined;
  credential?: string | undefined;
  /** A login that Herald has not answered yet, and a log-out. */
  userToken?: string | undefined;
  loggingOut?: boolean;
  topics: Record<string, "subscribed" | "add" | "remove">;
  opens: Open[];
};

type Options = {
  gateway: string;
  project: string;
  platform: "ios" | "android";
  /** `fcm` where the push token of an iPhone is FCM's; without it the platform's own provider. */
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

/** No answer, 429 and 5xx pass by themselves; the rest never will be accepted. */
const isRefusal = (error: unknown): error is Refused =>
  error instanceof Refused && error.status < 500 && error.status !== 429;

const maxOpens = 100;

export class Herald {
  private last: Promise<unknown> = Promise.resolve();
  private readonly options: Options;
  constructor(options: Options) {
    this.options = options;
  }

  /** At every start, and when the platform gives another push token. */
  register(pushToken: string): Promise<string[]> {
    return this.run((state) => ({ ...state, pushToken, due: true }));
  }

  /** `userToken`: a JWT from your backend. */
  login(userToken: string): Promise<string[]> {
    return this.run((state) => ({ ...state, userToken }));
  }

  /** Then delete the push token where the platform can (`messaging().deleteToken()`), so that what is on its way does not arrive. */
  logout(): Promise<string[]> {
    return this.run((state) => ({ ...state, userToken: undefined, loggingOut: true }));
  }

  subscribe(topic: string): Promise<string[]> {
    return this.run((state) => ({ ...state, topics: { ...state.topics, [topic]: "add" } }));
  }

  unsubscribe(topic: string): Promise<string[]> {
    return this.run((state) => ({ ...state, topics: { ...state.topics, [topic]: "remove" } }));
  }

  /** A person opened the notification with this data. */
  opened({ notification_id, project_id, token }: PushData): Promise<string[]> {
    if (typeof notification_id !== "string" || typeof project_id !== "string" || typeof token !== "string")
      return Promise.resolve([]);
    const open = { notification: notification_id, project: project_id, token };
    return this.run((state) => ({ ...state, opens: [...state.opens, open].slice(-maxOpens) }));
  }

  /** Tells Herald what it does not know yet: when the app starts and when the network is back. Resolves to what Herald refused, in words. */
  settle(): Promise<string[]> {
    return this.run((state) => state);
  }

  /** One after another, so that none overwrites what another stored. */
  private run(change: (state: State) => State): Promise<string[]> {
    const work = this.last.then(async () => {
      const refused: string[] = [];
      let state = await this.write(change(await this.read()));
      try {
        state = await this.sync(state, refused);
      } catch (error) {
        if (!isRefusal(error) || error.status !== 401) return refused;
        // Herald does not know the device any more: it registers as a new one.
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
    /** False where Herald refuses it, which it would do the next time too. */
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
        // With the credential it keeps the device.
        ...(state.registered && state.registered !== state.pushToken && { previous_identifier: state.registered }),
        identifiers: { current_locale: locale },
      };
      const answer = await this.call("PUT", "/identification", body, state.credential);
      // A credential comes with a new device alone, which has no topics yet. Without one a lost credential stays lost.
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
