import {
  type ApnsEnvironment,
  isActivityPushKey,
  maxFurtherTokens,
  type PushKey,
  pushTokenHash,
} from "@herald/contracts";
import { isTokenFacet, tokenFacet } from "./facets.ts";

/** A device's token for one of Apple's push types. A device has at most one of each key. */
export type StoredToken = {
  readonly key: PushKey;
  readonly token: string;
  readonly hash: string;
  /** Absent: the device's. */
  readonly environment?: ApnsEnvironment | undefined;
  /** A start may name a broadcast channel. */
  readonly channels?: boolean | undefined;
  /** When the app last sent it: refusals about earlier pushes are ignored. */
  readonly at: Date;
  /** The state of the activity is on its way to it. */
  readonly hasState?: true;
};

type Holder = { readonly tokens?: readonly StoredToken[] | undefined; readonly facets: readonly string[] };

const withTokens = <State extends Holder>(state: State, tokens: readonly StoredToken[]): State => ({
  ...state,
  tokens: tokens.length === 0 ? undefined : tokens,
  facets: [...state.facets.filter((facet) => !isTokenFacet(facet)), ...tokens.map(({ key }) => tokenFacet(key))],
});

/** A registration that changes nothing is stored at most once in this time. */
const againAfterMs = 60_000;

/** iOS removes a Live Activity twelve hours after its start. */
const activityTokenMs = 13 * 3_600_000;

/** Tokens of activities that have ended for certain. */
export const isExpired =
  (at: Date) =>
  ({ key, at: since }: StoredToken): boolean =>
    isActivityPushKey(key) && at.getTime() - since.getTime() > activityTokenMs;

/** Stores a token, in place of the last one of its key; the device's own token moves to its new key. The same object if nothing changes. */
export const putToken = <State extends Holder>(
  state: State,
  { key, token, environment, channels }: Pick<StoredToken, "key" | "token" | "environment" | "channels">,
  at: Date,
): State | "full" => {
  const { tokens = [] } = state;
  const hash = pushTokenHash(token);
  const known = tokens.find((one) => one.key === key);
  const isKnown = known?.hash === hash && known.environment === environment && !known.channels === !channels;
  if (isKnown && at.getTime() - known.at.getTime() < againAfterMs) return state;
  const isGone = isExpired(at);
  const others = tokens.filter((one) => one.key !== key && one.hash !== hash && !isGone(one));
  if (others.length >= maxFurtherTokens) return "full";
  const hasState = isKnown && known.hasState;
  const flags = { ...(channels && { channels }), ...(hasState && { hasState }) };
  const stored = { key, token, hash, ...(environment && { environment }), at, ...flags };
  return withTokens(state, [...others, stored]);
};

/** Notes that the state of an activity is on its way to its token. The same object if the device does not have the token, or it is noted. */
export const noteState = <State extends Holder>(state: State, key: PushKey, hash: string): State => {
  const { tokens = [] } = state;
  const isMeant = (one: StoredToken) => one.key === key && one.hash === hash && !one.hasState;
  if (!tokens.some(isMeant)) return state;
  return { ...state, tokens: tokens.map((one) => (isMeant(one) ? { ...one, hasState: true } : one)) };
};

/** Removes tokens. The same object if there is none. */
export const removeTokens = <State extends Holder>(state: State, isGone: (token: StoredToken) => boolean): State => {
  const { tokens = [] } = state;
  const left = tokens.filter((one) => !isGone(one));
  return left.length === tokens.length ? state : withTokens(state, left);
};

/** The tokens that a device keeps: those of activities go when the user changes, and after their time. The same array if all stay. */
export const keptTokens = (
  before: Pick<DeviceUser, "userId">,
  { userId, tokens }: DeviceUser,
  at: Date,
): readonly StoredToken[] | undefined => {
  const isGone = isExpired(at);
  const kept = tokens?.filter((one) => !isGone(one) && !(isActivityPushKey(one.key) && userId !== before.userId));
  return kept?.length === tokens?.length || kept === undefined ? tokens : kept.length === 0 ? undefined : kept;
};

type DeviceUser = { readonly userId?: string | undefined; readonly tokens?: readonly StoredToken[] | undefined };
