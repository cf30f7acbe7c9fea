import {
  type ApnsEnvironment,
  type AppData,
  appDataProblems,
  type DeviceStatus,
  type FcmTokenKind,
  mergePatch,
  type Platform,
  tokenProblems,
  type WebPushKeys,
} from "@herald/contracts";
import { facetsOf, topicsOf } from "./facets.ts";

/** What of a device can change. `facets` hold its topics, and what its data is found by. */
export type DeviceState = {
  readonly platform: Platform;
  readonly token: string;
  /** Of the registration that gave the token: a verdict about an older one says nothing. */
  readonly tokenUpdatedAt: Date;
  readonly environment?: ApnsEnvironment;
  readonly tokenKind?: FcmTokenKind;
  readonly keys?: WebPushKeys;
  /** The VAPID key that a Web Push subscription was made with; absent on those from before keys had ids. */
  readonly vapidKeyId?: string;
  readonly status: DeviceStatus;
  /** Why it is inactive: a new token brings back whom a provider gave up, not whom the app did. */
  readonly inactiveReason?: "unregistered" | "requested";
  readonly metadata: AppData;
  readonly identifiers: AppData;
  readonly facets: readonly string[];
};

/** Which VAPID key a subscription was made with: what the app says, and what to take for a new subscription when it says nothing. */
type SubscribedWith = { readonly vapidKeyId?: string | undefined; readonly currentVapidKeyId?: string | undefined };

/** What a registration says; what it leaves out stays as it is. `metadata` and `identifiers` are merge patches. */
export type Registration = SubscribedWith & {
  readonly token: string;
  readonly topics: readonly string[];
  readonly metadata?: AppData | undefined;
  readonly identifiers?: AppData | undefined;
  readonly environment?: ApnsEnvironment | undefined;
  readonly tokenKind?: FcmTokenKind | undefined;
  readonly keys?: WebPushKeys | undefined;
};

/** The same of a change by `PATCH`. */
export type Change = SubscribedWith & {
  readonly token?: string | undefined;
  readonly keys?: WebPushKeys | undefined;
  readonly metadata?: AppData | undefined;
  readonly identifiers?: AppData | undefined;
  readonly status?: DeviceStatus | undefined;
};

/** Either the state afterwards with what is new in it, or what is wrong in sentences that begin with the field. */
export type Changed =
  | {
      readonly state: DeviceState;
      /** Fields of the interface's Device, without `topics`. */
      readonly changed: readonly string[];
      /** Names of topics that it was not subscribed to before. */
      readonly subscribed: readonly string[];
    }
  | { readonly problems: readonly string[] };

const sentence = (field: string, path: readonly (string | number)[], message: string): string =>
  `${[field, ...path].join(".")}: ${message}`;

/** Merging may exceed the limits that each of the two kept. */
const dataProblems = (field: "metadata" | "identifiers", data: AppData): string[] =>
  appDataProblems(data).map(({ path, message }) => sentence(field, path, message));

const sameJson = (one: unknown, other: unknown): boolean => JSON.stringify(one) === JSON.stringify(other);

const compare = (before: DeviceState, after: DeviceState): string[] => {
  const fields = {
    token: "token",
    environment: "environment",
    tokenKind: "token_kind",
    keys: "keys",
    vapidKeyId: "vapid_key_id",
    status: "status",
    metadata: "metadata",
    identifiers: "identifiers",
  } as const;
  return Object.entries(fields)
    .filter(([field]) => !sameJson(before[field as keyof typeof fields], after[field as keyof typeof fields]))
    .map(([, name]) => name);
};

/** What a patch leaves of the data; the same object when it changes nothing. */
const patched = (data: AppData, patch: AppData | undefined): AppData =>
  patch === undefined ? data : mergePatch(data, patch);

/** An endpoint stays with the key that it was made with, so only a new one is taken to be made with the current key. */
const vapidKeyOf = (
  before: Pick<DeviceState, "platform" | "vapidKeyId"> & { readonly token?: string },
  token: string,
  { vapidKeyId, currentVapidKeyId }: SubscribedWith,
): Pick<DeviceState, "vapidKeyId"> => {
  const id = vapidKeyId ?? (before.token === token ? before.vapidKeyId : currentVapidKeyId);
  return id === undefined || before.platform !== "web" ? {} : { vapidKeyId: id };
};

const nothing = { changed: [], subscribed: [] };

const active = ({ inactiveReason: _, ...state }: DeviceState): DeviceState => ({ ...state, status: "active" });

/** A device that nobody knew. */
export const newDevice = (platform: Platform, registration: Registration, now: Date): Changed =>
  registered(
    {
      platform,
      token: registration.token,
      tokenUpdatedAt: now,
      status: "active",
      metadata: {},
      identifiers: {},
      facets: [],
      ...vapidKeyOf({ platform }, registration.token, registration),
    },
    registration,
    now,
  );

/** A known device registers, with the token it has or with another: it is active from now on. */
export const registered = (before: DeviceState, registration: Registration, now: Date): Changed => {
  const { topics, environment, tokenKind, keys, token } = registration;
  const { vapidKeyId: _, ...rest } = active(before);
  const metadata = patched(before.metadata, registration.metadata);
  const identifiers = patched(before.identifiers, registration.identifiers);
  const problems = [...dataProblems("metadata", metadata), ...dataProblems("identifiers", identifiers)];
  if (problems.length > 0) return { problems };

  const known = new Set(topicsOf(before.facets));
  const subscribed = [...new Set(topics)].filter((topic) => !known.has(topic));
  const state: DeviceState = {
    ...rest,
    token,
    tokenUpdatedAt: now,
    ...vapidKeyOf(before, token, registration),
    ...(environment === undefined ? {} : { environment }),
    ...(tokenKind === undefined ? {} : { tokenKind }),
    ...(keys === undefined ? {} : { keys }),
    metadata,
    identifiers,
    facets: facetsOf({ topics: [...known, ...subscribed], metadata, identifiers }),
  };
  return { state, changed: compare(before, state), subscribed };
};

/** A known device is changed; its state is the same object when nothing is new. A new token counts as a registration of it, but does not bring back whom the app retired. */
export const changed = (before: DeviceState, change: Change, now: Date): Changed => {
  const { token = before.token, keys = before.keys, status } = change;
  const metadata = patched(before.metadata, change.metadata);
  const identifiers = patched(before.identifiers, change.identifiers);
  const problems = [
    ...(token === before.token && change.keys === undefined
      ? []
      : tokenProblems({ platform: before.platform, token, keys }, "token").map(({ path, message }) =>
          sentence("device", path, message),
        )),
    ...dataProblems("metadata", metadata),
    ...dataProblems("identifiers", identifiers),
  ];
  if (problems.length > 0) return { problems };

  const { vapidKeyId: _, ...rest } = before;
  let state: DeviceState = {
    ...rest,
    ...vapidKeyOf(before, token, change),
    ...(keys === undefined ? {} : { keys }),
    metadata,
    identifiers,
    facets: facetsOf({ topics: topicsOf(before.facets), metadata, identifiers }),
  };
  if (token !== before.token) {
    state = { ...state, token, tokenUpdatedAt: now };
    if (before.inactiveReason === "unregistered") state = active(state);
  }
  if (status === "active") state = active(state);
  if (status === "inactive") state = { ...state, status: "inactive", inactiveReason: "requested" };
  const names = compare(before, state);
  if (names.length === 0 && state.inactiveReason === before.inactiveReason) return { state: before, ...nothing };
  return { state, changed: names, subscribed: [] };
};
