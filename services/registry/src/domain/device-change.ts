import {
  type AppData,
  appDataProblems,
  type Capabilities,
  canonicalToken,
  capabilitiesFrom,
  hasCapability,
  knownCapabilities,
  otherProvider,
  type Platform,
  servingProvider,
  tokenProblems,
} from "@herald/contracts";
import { mergePatch } from "@herald/rules";
import {
  type Change,
  type ChangeResult,
  type CommonChange,
  type DeviceState,
  provesUser,
  type Registration,
} from "./device-state.ts";
import { countedFacets, facetsOf, maxFacets, topicsOfFacets } from "./facets.ts";
import { keptTokens } from "./further-tokens.ts";
import { nameInstallation } from "./installations.ts";

const sentence = (field: string, path: readonly (string | number)[], message: string): string =>
  `${[field, ...path].join(".")}: ${message}`;

/** The merge of two valid parts may exceed a limit. */
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

/** A device above the limit may not get more facets. */
const facetProblems = (before: readonly string[], after: readonly string[]): string[] => {
  const count = countedFacets(after);
  if (count <= maxFacets || count <= countedFacets(before)) return [];
  return [
    `device: may have at most ${maxFacets} topics and single values of metadata and identifiers together; this makes ${count}. Values in arrays do not count, for no target finds them`,
  ];
};

/** The same object when nothing changes. Undefined when the user token is not newer than the last one. */
const withUser = (
  before: DeviceState,
  { user: change, unproven }: CommonChange,
  now: Date,
): DeviceState | undefined => {
  if (change === undefined) return before;
  const { userId: _, identifiedAt: __, userClaimed, ...rest } = before;
  if (change.by === "project") {
    if (change.userId === null) return before.userId === undefined ? before : rest;
    const same = change.userId === before.userId && userClaimed === undefined;
    return same ? before : { ...rest, userId: change.userId, identifiedAt: now };
  }
  const { userId, issuedAt } = change;
  if (before.userTokenIat !== undefined && issuedAt <= before.userTokenIat)
    return userId === before.userId ? before : undefined;
  const claimed = unproven === true && !provesUser(change, before);
  return { ...rest, userId, identifiedAt: now, userTokenIat: issuedAt, ...(claimed && { userClaimed: true }) };
};

const sameJson = (one: unknown, other: unknown): boolean => JSON.stringify(one) === JSON.stringify(other);

const compare = (before: DeviceState, after: DeviceState): string[] => {
  const fields = [
    ["token", "token"],
    ["installationId", "installation_id"],
    ["environment", "environment"],
    ["app", "app"],
    ["tokenKind", "token_kind"],
    ["keys", "keys"],
    ["vapidKeyId", "vapid_key_id"],
    ["capabilities", "capabilities"],
    ["tokens", "tokens"],
    ["status", "status"],
    ["metadata", "metadata"],
    ["identifiers", "identifiers"],
    ["userId", "user_id"],
  ] as const;
  return fields.flatMap(([field, name]) => (sameJson(before[field], after[field]) ? [] : [name]));
};

/** Whether the fields that clients do not see are the same. */
const sameInside = (one: DeviceState, other: DeviceState): boolean =>
  (["userTokenIat", "userClaimed", "inactiveReason", "installationBy"] as const).every(
    (field) => one[field] === other[field],
  );

const patched = (data: AppData, patch: AppData | undefined): AppData =>
  patch === undefined ? data : mergePatch(data, patch);

/** An endpoint keeps its key; only a new endpoint gets the default key. */
const vapidKeyOf = (
  before: Pick<DeviceState, "platform" | "provider" | "vapidKeyId"> & { readonly token?: string },
  token: string,
  { vapidKeyId, currentVapidKeyId }: CommonChange,
): string | undefined =>
  servingProvider(before) === "webpush"
    ? (vapidKeyId ?? (before.token === token ? before.vapidKeyId : currentVapidKeyId))
    : undefined;

/**
 * A client that proves only the push token may remove capabilities: with `draws`, a device whose app has no kit would show nothing.
 */
const capabilitiesOf = (
  before: DeviceState,
  { capabilities: given, unproven }: CommonChange,
): Capabilities | undefined => {
  if (given === undefined) return before.capabilities;
  if (!unproven) return capabilitiesFrom(given);
  return capabilitiesFrom(
    knownCapabilities.filter((one) => given.includes(one) && hasCapability(before.capabilities, one)),
  );
};

/** Merges the user and the data, for registrations and changes. Undefined: the user token is not newer than the last one. */
const mergeChange = (before: DeviceState, change: CommonChange, topics: readonly string[], now: Date) => {
  const owned = withUser(before, change, now);
  if (owned === undefined) return undefined;
  const tokens = keptTokens(before, owned, now);
  const identified = tokens === owned.tokens ? owned : { ...owned, tokens };
  const metadata = patched(before.metadata, change.metadata);
  const identifiers = patched(before.identifiers, change.identifiers);
  const facets = facetsOf({ topics, metadata, identifiers, userId: identified.userId, tokens: identified.tokens });
  const problems = [
    ...dataProblems("metadata", before.metadata, metadata, change.maxBytes),
    ...dataProblems("identifiers", before.identifiers, identifiers, change.maxBytes),
    ...facetProblems(before.facets, facets),
  ];
  return { identified, data: { metadata, identifiers, facets }, problems };
};

const active = ({ inactiveReason: _, ...state }: DeviceState): DeviceState => ({ ...state, status: "active" });

export const newDevice = (platform: Platform, registration: Registration, now: Date): ChangeResult => {
  const key = { platform, ...otherProvider({ platform, provider: registration.provider }) };
  const { status = "active", lastSeenAt } = registration.put ?? {};
  return applyRegistration(
    {
      ...key,
      token: registration.token,
      tokenUpdatedAt: now,
      status,
      ...(status === "inactive" && { inactiveReason: "requested" }),
      ...(lastSeenAt && { lastSeenAt }),
      metadata: {},
      identifiers: {},
      facets: [],
      vapidKeyId: vapidKeyOf(key, registration.token, registration),
    },
    registration,
    now,
  );
};

/**
 * A registration activates a known device, unless the project's backend sent it, or deactivated the device and the client proves nothing.
 */
export const applyRegistration = (before: DeviceState, registration: Registration, now: Date): ChangeResult => {
  const { topics, environment, app, tokenKind, keys, token, installationId, put, unproven } = registration;
  const known = new Set(topicsOfFacets(before.facets));
  const subscribed = [...new Set(topics)].filter((topic) => !known.has(topic));
  const merged = mergeChange(before, registration, [...known, ...subscribed], now);
  if (merged === undefined) return { usedToken: true };
  const { identified, data, problems } = merged;
  if (problems.length > 0) return { problems };

  const staysInactive = unproven === true && before.inactiveReason === "requested";
  const seen = { ...(staysInactive ? identified : active(identified)), tokenUpdatedAt: now, lastSeenAt: now };
  const state: DeviceState = {
    ...(put ? identified : seen),
    token,
    vapidKeyId: vapidKeyOf(before, token, registration),
    capabilities: capabilitiesOf(before, registration),
    ...(environment && { environment }),
    ...(app && { app }),
    ...(tokenKind && { tokenKind }),
    ...(keys && { keys }),
    ...nameInstallation(before, installationId, registration.byProject),
    ...data,
  };
  const names = compare(before, state);
  const same =
    names.length === 0 &&
    sameInside(before, state) &&
    // Compared without order: a subscription appends its facet at the end.
    before.facets.length === state.facets.length &&
    state.facets.every((facet) => before.facets.includes(facet));
  return { state, changed: names, subscribed, same };
};

/**
 * Returns the same state object if nothing changes. A new token counts as a registration, but does not reactivate a device that was
 * deactivated on request.
 */
export const applyChange = (before: DeviceState, change: Change, now: Date): ChangeResult => {
  const { keys = before.keys, status } = change;
  const token = change.token === undefined ? before.token : canonicalToken(change.token, servingProvider(before));
  const merged = mergeChange(before, change, topicsOfFacets(before.facets), now);
  if (merged === undefined) return { usedToken: true };
  const isNewAddress = token !== before.token || change.keys !== undefined;
  const addressProblems = isNewAddress
    ? tokenProblems({ platform: before.platform, provider: before.provider, token, keys }, "token")
    : [];
  const problems = [
    ...addressProblems.map(({ path, message }) => sentence("device", path, message)),
    ...merged.problems,
  ];
  if (problems.length > 0) return { problems };

  const vapidKeyId = vapidKeyOf(before, token, change);
  const { app: appBefore, ...identified } = merged.identified;
  const app = change.app === undefined ? appBefore : (change.app ?? undefined);
  let state: DeviceState = {
    ...identified,
    ...(app !== undefined && { app }),
    vapidKeyId,
    capabilities: capabilitiesOf(before, change),
    ...(keys && { keys }),
    ...nameInstallation(before, change.installationId, change.byProject),
    ...merged.data,
  };
  if (token !== before.token) {
    state = { ...state, token, tokenUpdatedAt: now };
    if (before.inactiveReason !== "requested") state = active(state);
  }
  if (status === "active") state = active(state);
  if (status === "inactive") state = { ...state, status: "inactive", inactiveReason: "requested" };
  const names = compare(before, state);
  if (names.length === 0 && sameInside(before, state)) return { state: before, changed: [], subscribed: [] };
  return { state, changed: names, subscribed: [] };
};
