import type { Problem } from "./call.ts";

export type PushStatus = {
  /** The id that Herald gave the device. */
  readonly device: string | null;
  /** The id of the logged-in user, once Herald has confirmed it. */
  readonly user: string | null;
  /** Names of the topics that the device is subscribed to. */
  readonly topics: readonly string[];
  /** A change has not reached Herald yet. The kit keeps it and retries. */
  readonly pending: boolean;
  /** Why the last call failed; null if it succeeded. */
  readonly problem: Omit<Problem, "retryAfterMs"> | null;
};

/** A kind of notifications that the project has declared, and whether the device gets it. */
export type KindChoice = {
  readonly kind: string;
  /** What people read beside its switch. */
  readonly title: string;
  readonly on: boolean;
  /** It cannot be switched off. */
  readonly critical: boolean;
  /** Whose choice `on` is: `device`, `user` or `default`. */
  readonly set_by: string;
};

/** No kinds beside a problem. */
export type KindChoices = { readonly kinds: readonly KindChoice[]; readonly problem: PushStatus["problem"] };

/** The fields of a push that the app's code gets: `userInfo` on iOS, the message's data on Android. */
export type PushPayload = Readonly<Record<string, unknown>>;

/** No method rejects: errors are in `problem`. */
export type Herald = {
  /** Registers the push token that the platform issued last. */
  readonly register: (pushToken: string) => Promise<PushStatus>;
  /** `userToken`: a JWT from your backend. It is never stored: call it at each start while the user is logged in. */
  readonly login: (userToken: string) => Promise<PushStatus>;
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
  /**
   * Authorizes calls of this device at Herald's API, as `Bearer`: keep it on the phone, because who has it acts for the device. Null until
   * Herald has registered the device.
   */
  readonly credential: () => Promise<string | null>;
  /** Reports. The kit makes those of the notifications that it shows. */
  readonly received: (push: PushPayload) => Promise<PushStatus>;
  readonly dismissed: (push: PushPayload) => Promise<PushStatus>;
  readonly open: (push: PushPayload, button?: string) => Promise<PushStatus>;
  /** Sends what is pending. */
  readonly settle: () => Promise<PushStatus>;
};
