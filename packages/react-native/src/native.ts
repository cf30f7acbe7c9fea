import type { Herald, KindChoices, PushPayload, PushStatus } from "./types.ts";

/** The native module of Android, on the kit for Android. Its calls return the status after they are stored and sent, or failed. */
export type NativeHerald = {
  readonly start: () => void;
  readonly register: (pushToken: string) => Promise<PushStatus>;
  readonly login: (userToken: string) => Promise<PushStatus>;
  readonly logout: () => Promise<PushStatus>;
  readonly addTopic: (name: string) => Promise<PushStatus>;
  readonly removeTopic: (name: string) => Promise<PushStatus>;
  /** No kinds: changes nothing. */
  readonly preferences: (kinds: Readonly<Record<string, boolean>>) => Promise<KindChoices>;
  readonly credential: () => Promise<string | null>;
  readonly report: (kind: string, push: Readonly<Record<string, string>>, button: string | null) => Promise<PushStatus>;
  readonly settle: () => Promise<PushStatus>;
  /** The link of the notification that started the app; null without one. */
  readonly takeLink: () => string | null;
  readonly addListener: (event: "onChange" | "onOpen", listener: (event: never) => void) => void;
};

const texts = (push: PushPayload): Readonly<Record<string, string>> =>
  Object.fromEntries(Object.entries(push).filter((entry): entry is [string, string] => typeof entry[1] === "string"));

export const onAndroid = (native: NativeHerald): Herald => ({
  register: native.register,
  login: native.login,
  logout: native.logout,
  topics: { add: native.addTopic, remove: native.removeTopic },
  preferences: { get: () => native.preferences({}), set: native.preferences },
  credential: native.credential,
  received: (push) => native.report("received", texts(push), null),
  dismissed: (push) => native.report("dismissed", texts(push), null),
  open: (push, button) => native.report("open", texts(push), button ?? null),
  settle: native.settle,
});
