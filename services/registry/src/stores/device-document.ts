import {
  type AppData,
  bucketOf,
  canonicalZone,
  type DeviceId,
  type OutboxEvent,
  type ProjectId,
  pushTokenHash,
} from "@herald/contracts";
import { type IndexSpec, indexNames, outboxIndex, storable } from "@herald/mongo";
import { localeOf, timeZoneOf } from "@herald/rules";
import type { DeviceState } from "../domain/device-state.ts";
import { installationKey } from "../domain/installations.ts";
import type { Choices } from "../domain/preferences.ts";

export type DeviceDocument = DeviceState & {
  readonly _id: DeviceId;
  readonly projectId: ProjectId;
  /** 0 to 4095, derived from the id. A page of an expansion is a range of buckets. */
  readonly bucket: number;
  /** Absent on tombstones, so that the unique index does not contain them. */
  readonly tokenHash?: string;
  /** SHA-256. Empty for a device that the project's backend sent, until the device first identifies itself. */
  readonly credentialHash: string;
  /** See `installationKey`; kept, so that an index finds the devices of one phone. */
  readonly installationKey?: string | undefined;
  /** Copy of `identifiers.current_locale`, so that an expansion need not read all identifiers. */
  readonly locale?: string;
  /** The canonical name of `identifiers.current_time_zone`. */
  readonly timeZone?: string;
  /** What the device has chosen for kinds of notifications. */
  readonly preferences?: Choices;
  /** A copy of what its user has chosen, and its version. */
  readonly userPreferences?: Choices;
  readonly userPreferencesVersion?: number;
  /** Grows with every change, so that one of two concurrent changes is retried. */
  readonly version: number;
  readonly createdAt: Date;
  readonly updatedAt: Date;
  readonly inactiveAt?: Date;
  /** Time of a token refusal that may be older than the last registration; the next refusal decides. */
  readonly doubtedAt?: Date;
  /** A tombstone, which stays until its event is published. */
  readonly deletedAt?: Date;
  readonly outbox?: readonly OutboxEvent[];
};

export const deviceIndexes = {
  token: {
    // `provider` is absent for the platform's own. It is last, so that a query by token needs no provider.
    fields: { projectId: 1, platform: 1, tokenHash: 1, provider: 1 },
    purpose: "unique",
    unique: true,
    partial: { tokenHash: { $exists: true } },
  },
  list: { fields: { projectId: 1, _id: 1 }, purpose: "list" },
  status: { fields: { projectId: 1, status: 1, _id: 1 }, purpose: "list" },
  platform: { fields: { projectId: 1, platform: 1, _id: 1 }, purpose: "list" },
  bucket: { fields: { projectId: 1, bucket: 1 }, purpose: "expand" },
  facets: { fields: { projectId: 1, facets: 1, bucket: 1 }, purpose: "expand" },
  /** Facets contain the user too, but their index is not sorted by user. */
  users: {
    fields: { projectId: 1, userId: 1, _id: 1 },
    purpose: "list",
    partial: { userId: { $exists: true } },
  },
  furtherToken: {
    fields: { projectId: 1, "tokens.hash": 1 },
    purpose: "unique",
    unique: true,
    partial: { "tokens.hash": { $exists: true } },
  },
  app: {
    fields: { projectId: 1, app: 1, _id: 1 },
    purpose: "list",
    partial: { app: { $exists: true } },
  },
  vapidKey: {
    fields: { projectId: 1, vapidKeyId: 1, status: 1 },
    purpose: "count",
    // Only Web Push subscriptions have `keys`, including those from before VAPID keys had ids.
    partial: { keys: { $exists: true } },
  },
  installation: {
    fields: { projectId: 1, installationKey: 1, status: 1 },
    purpose: "expand",
    partial: { installationKey: { $exists: true } },
  },
  outbox: outboxIndex,
  tombstone: { fields: { deletedAt: 1 }, purpose: "retention", partial: { deletedAt: { $exists: true } } },
} as const satisfies Record<string, IndexSpec>;

/** Names of the indexes, for `hint`. */
export const deviceHints = indexNames(deviceIndexes);

/** The stored fields of a state. Undefined fields must not be stored. */
export const stateFields = (state: DeviceState, at: Date) => ({
  platform: state.platform,
  provider: state.provider,
  installationId: state.installationId,
  installationBy: state.installationBy,
  installationKey: installationKey(state),
  token: state.token,
  tokenHash: pushTokenHash(state.token),
  tokenUpdatedAt: state.tokenUpdatedAt,
  environment: state.environment,
  app: state.app,
  tokenKind: state.tokenKind,
  tokens: state.tokens,
  keys: state.keys,
  vapidKeyId: state.vapidKeyId,
  capabilities: state.capabilities,
  status: state.status,
  inactiveReason: state.inactiveReason,
  metadata: storable(state.metadata) as AppData,
  identifiers: storable(state.identifiers) as AppData,
  locale: localeOf(state.identifiers),
  timeZone: canonicalZone(timeZoneOf(state.identifiers) ?? ""),
  facets: state.facets,
  userId: state.userId,
  identifiedAt: state.identifiedAt,
  userClaimed: state.userClaimed,
  userTokenIat: state.userTokenIat,
  lastSeenAt: state.lastSeenAt,
  lastOpenedAt: state.lastOpenedAt,
  updatedAt: at,
});

export const newDeviceDocument = (
  projectId: ProjectId,
  id: DeviceId,
  state: DeviceState,
  { credentialHash, at }: { readonly credentialHash: string; readonly at: Date },
): DeviceDocument => {
  const fields = Object.entries(stateFields(state, at)).filter(([, value]) => value !== undefined);
  return {
    _id: id,
    projectId,
    bucket: bucketOf(id),
    ...(Object.fromEntries(fields) as ReturnType<typeof stateFields> & DeviceState),
    ...(state.status === "inactive" && { inactiveAt: at }),
    credentialHash,
    version: 1,
    createdAt: at,
  };
};
