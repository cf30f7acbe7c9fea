import type { Problem } from "./call.ts";

export type Status = {
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

/** The fields of a push that the app's code gets: `userInfo` on iOS, the message's data on Android. */
export type Push = Readonly<Record<string, unknown>>;

/** No method rejects: errors are in `problem`. */
export type Herald = {
  /** Registers the push token that the platform issued last. */
  readonly register: (pushToken: string) => Promise<Status>;
  /** `userToken`: a JWT from your backend. It is never stored: call it at each start while the user is logged in. */
  readonly login: (userToken: string) => Promise<Status>;
  readonly logout: () => Promise<Status>;
  readonly topics: {
    readonly add: (name: string) => Promise<Status>;
    readonly remove: (name: string) => Promise<Status>;
  };
  /** Reports. The kit makes those of the notifications that it shows. */
  readonly received: (push: Push) => Promise<Status>;
  readonly dismissed: (push: Push) => Promise<Status>;
  readonly open: (push: Push, button?: string) => Promise<Status>;
  /** Sends what is pending. */
  readonly settle: () => Promise<Status>;
};
