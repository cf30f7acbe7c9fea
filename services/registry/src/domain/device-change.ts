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
import { countedFacets, facetsOf, maxFacets, topicsOf } from "./facets.ts";

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
  /** Whose it is, as a project token or a user token said. */
  readonly userId?: string;
  /** When it was given its user. */
  readonly identifiedAt?: Date;
  /** `iat` of the last user token that it took, in seconds since 1970; it stays when the user logs out. */
  readonly userTokenIat?: number;
  /** When it last registered, up to {@link seenEveryMs} ago where it registered as it is. */
  readonly lastSeenAt?: Date;
};

/** A device that registers as it is, is written once in so long: apps register on each start. */
export const seenEveryMs = 86_400_000;

/** Whose a device is to be. */
export type UserChange =
  | { readonly by: "project"; readonly userId: string | null }
  | { readonly by: "token"; readonly userId: string; readonly issuedAt: number };

/** What is the same in every way to change a device. */
type Limited = {
  readonly user?: UserChange | undefined;
  /** Of metadata and identifiers each, as JSON; absent: what {@link AppData} allows. */
  readonly maxBytes?: number | undefined;
};

/** Which VAPID key a subscription was made with: what the app says, and what to take for a new subscription when it says nothing. */
type SubscribedWith = { readonly vapidKeyId?: string | undefined; readonly currentVapidKeyId?: string | undefined };

/** What a registration says; what it leaves out stays as it is. `metadata` and `identifiers` are merge patches. */
export type Registration = SubscribedWith &
  Limited & {
    readonly token: string;
    readonly topics: readonly string[];
    readonly metadata?: AppData | undefined;
    readonly identifiers?: AppData | undefined;
    readonly environment?: ApnsEnvironment | undefined;
    readonly tokenKind?: FcmTokenKind | undefined;
    readonly keys?: WebPushKeys | undefined;
  };

/** The same of a change by `PATCH`. */
export type Change = SubscribedWith &
  Limited & {
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
      /** Nothing is new but the time. */
      readonly same?: boolean;
    }
  | { readonly problems: readonly string[] }
  /** The user token is not newer than the last one that the device took. */
  | { readonly usedToken: true };

const sentence = (field: string, path: readonly (string | number)[], message: string): string =>
  `${[field, ...path].join(".")}: ${message}`;

/** Merging may exceed the limits that each of the two kept. */
const dataProblems = (
  field: "metadata" | "identifiers",
  before: AppData,
  after: AppData,
  maxBytes: number | undefined,
): string[] => {
  const problems = appDataProblems(after).map(({ path, message }) => sentence(field, path, message));
  if (maxBytes === undefined || after === before) return problems;
  const bytes = jsonBytes(after);
  if (bytes > maxBytes && bytes > jsonBytes(before))
    problems.push(
      `${field}: must be at most ${maxBytes} bytes of JSON without a credential; this makes ${bytes}. Your backend may store more`,
    );
  return problems;
};

const jsonBytes = (data: AppData): number => Buffer.byteLength(JSON.stringify(data));

/** Devices from before the limit keep what they have; they get no more. */
const facetProblems = (before: readonly string[], after: readonly string[]): string[] => {
  const count = countedFacets(after);
  if (count <= maxFacets || count <= countedFacets(before)) return [];
  return [
    `device: may have at most ${maxFacets} topics and single values of metadata and identifiers together; this makes ${count}. Values in arrays do not count, for no target finds them`,
  ];
};

/** The state with its user changed; the same object when nothing is. Undefined when the user token is not newer than the last. */
const withUser = (before: DeviceState, change: UserChange | undefined, now: Date): DeviceState | undefined => {
  if (change === undefined) return before;
  const { userId: _, identifiedAt: __, ...rest } = before;
  if (change.by === "project") {
    if (change.userId === null) return before.userId === undefined ? before : rest;
    return change.userId === before.userId ? before : { ...rest, userId: change.userId, identifiedAt: now };
  }
  const { userId, issuedAt } = change;
  if (before.userTokenIat !== undefined && issuedAt <= before.userTokenIat)
    return userId === before.userId ? before : undefined;
  return { ...rest, userId, identifiedAt: now, userTokenIat: issuedAt };
};

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
    userId: "user_id",
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
  const { topics, environment, tokenKind, keys, token, maxBytes } = registration;
  const identified = withUser(before, registration.user, now);
  if (identified === undefined) return { usedToken: true };
  const { vapidKeyId: _, ...rest } = active(identified);
  const metadata = patched(before.metadata, registration.metadata);
  const identifiers = patched(before.identifiers, registration.identifiers);
  const known = new Set(topicsOf(before.facets));
  const subscribed = [...new Set(topics)].filter((topic) => !known.has(topic));
  const { userId } = identified;
  const facets = facetsOf({ topics: [...known, ...subscribed], metadata, identifiers, userId });
  const problems = [
    ...dataProblems("metadata", before.metadata, metadata, maxBytes),
    ...dataProblems("identifiers", before.identifiers, identifiers, maxBytes),
    ...facetProblems(before.facets, facets),
  ];
  if (problems.length > 0) return { problems };

  const state: DeviceState = {
    ...rest,
    token,
    tokenUpdatedAt: now,
    lastSeenAt: now,
    ...vapidKeyOf(before, token, registration),
    ...(environment === undefined ? {} : { environment }),
    ...(tokenKind === undefined ? {} : { tokenKind }),
    ...(keys === undefined ? {} : { keys }),
    metadata,
    identifiers,
    facets,
  };
  const names = compare(before, state);
  const same =
    names.length === 0 &&
    before.userTokenIat === state.userTokenIat &&
    before.inactiveReason === undefined &&
    // In another order where it was subscribed since; others on devices from before some facets.
    before.facets.length === facets.length &&
    facets.every((facet) => before.facets.includes(facet));
  return { state, changed: names, subscribed, same };
};

/** A known device is changed; its state is the same object when nothing is new. A new token counts as a registration of it, but does not bring back whom the app retired. */
export const changed = (before: DeviceState, change: Change, now: Date): Changed => {
  const { token = before.token, keys = before.keys, status, maxBytes } = change;
  const identified = withUser(before, change.user, now);
  if (identified === undefined) return { usedToken: true };
  const metadata = patched(before.metadata, change.metadata);
  const identifiers = patched(before.identifiers, change.identifiers);
  const { userId } = identified;
  const facets = facetsOf({ topics: topicsOf(before.facets), metadata, identifiers, userId });
  const problems = [
    ...(token === before.token && change.keys === undefined
      ? []
      : tokenProblems({ platform: before.platform, token, keys }, "token").map(({ path, message }) =>
          sentence("device", path, message),
        )),
    ...dataProblems("metadata", before.metadata, metadata, maxBytes),
    ...dataProblems("identifiers", before.identifiers, identifiers, maxBytes),
    ...facetProblems(before.facets, facets),
  ];
  if (problems.length > 0) return { problems };

  const { vapidKeyId: _, ...rest } = identified;
  let state: DeviceState = {
    ...rest,
    ...vapidKeyOf(before, token, change),
    ...(keys === undefined ? {} : { keys }),
    metadata,
    identifiers,
    facets,
  };
  if (token !== before.token) {
    state = { ...state, token, tokenUpdatedAt: now };
    if (before.inactiveReason === "unregistered") state = active(state);
  }
  if (status === "active") state = active(state);
  if (status === "inactive") state = { ...state, status: "inactive", inactiveReason: "requested" };
  const names = compare(before, state);
  const same = state.inactiveReason === before.inactiveReason && state.userTokenIat === before.userTokenIat;
  if (names.length === 0 && same) return { state: before, ...nothing };
  return { state, changed: names, subscribed: [] };
};
