import {
  type AppData,
  type DeviceId,
  deviceBucket,
  type OutboxEvent,
  type ProjectId,
  pushTokenHash,
} from "@herald/contracts";
import { type IndexSpec, outboxIndex } from "@herald/mongo";
import type { DeviceState } from "../domain/device-change.ts";

export type DeviceDocument = DeviceState & {
  readonly _id: DeviceId;
  readonly projectId: ProjectId;
  /** 0 to 4095, by the id: a page of an expansion is a range of them. */
  readonly bucket: number;
  /** Absent on the tombstone of a deleted device, which is therefore in no unique index. */
  readonly tokenHash?: string;
  /** SHA-256 of the device's credential. */
  readonly credentialHash: string;
  /** `identifiers.current_locale`, where a delivery reads it without the rest. */
  readonly locale?: string;
  /** Grows with every change, so that of two changes based on the same state one begins again. */
  readonly version: number;
  readonly createdAt: Date;
  readonly updatedAt: Date;
  readonly inactiveAt?: Date;
  /** A provider's verdict about its token may be older than a registration that was not written: the next one decides. */
  readonly doubtedAt?: Date;
  /** A tombstone: it stays until its event is out. */
  readonly deletedAt?: Date;
  readonly outbox?: readonly OutboxEvent[];
};

/** Not a tombstone. */
export const living = { deletedAt: { $exists: false } } as const;

export const deviceIndexes = {
  token: {
    fields: { projectId: 1, platform: 1, tokenHash: 1 },
    purpose: "unique",
    unique: true,
    partial: { tokenHash: { $exists: true } },
  },
  list: { fields: { projectId: 1, _id: 1 }, purpose: "list" },
  status: { fields: { projectId: 1, status: 1, _id: 1 }, purpose: "list" },
  bucket: { fields: { projectId: 1, bucket: 1 }, purpose: "expand" },
  facets: { fields: { projectId: 1, facets: 1, bucket: 1 }, purpose: "expand" },
  vapidKey: {
    fields: { projectId: 1, vapidKeyId: 1, status: 1 },
    purpose: "count",
    // Web Push subscriptions alone have keys, also those from before keys had ids.
    partial: { keys: { $exists: true } },
  },
  outbox: outboxIndex,
  tombstone: { fields: { deletedAt: 1 }, purpose: "retention", partial: { deletedAt: { $exists: true } } },
} as const satisfies Record<string, IndexSpec>;

/** Longer texts are no locale. */
const longestLocale = 35;

const localeOf = ({ current_locale: locale }: AppData): string | undefined =>
  typeof locale === "string" && locale.length <= longestLocale ? locale : undefined;

/** The driver takes an object with a key `_bsontype` for one of its own classes; a map has the same form in the database. */
const storable = (value: unknown): unknown => {
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map(storable);
  const entries = Object.entries(value).map(([key, inner]) => [key, storable(inner)] as const);
  return Object.hasOwn(value, "_bsontype") ? new Map(entries) : Object.fromEntries(entries);
};

/** The fields of a state as they are stored; those that are undefined are to be absent. */
export const stateFields = (state: DeviceState, at: Date) => ({
  platform: state.platform,
  token: state.token,
  tokenHash: pushTokenHash(state.token),
  tokenUpdatedAt: state.tokenUpdatedAt,
  environment: state.environment,
  tokenKind: state.tokenKind,
  keys: state.keys,
  vapidKeyId: state.vapidKeyId,
  status: state.status,
  inactiveReason: state.inactiveReason,
  metadata: storable(state.metadata) as AppData,
  identifiers: storable(state.identifiers) as AppData,
  locale: localeOf(state.identifiers),
  facets: state.facets,
  userId: state.userId,
  identifiedAt: state.identifiedAt,
  userTokenIat: state.userTokenIat,
  lastSeenAt: state.lastSeenAt,
  updatedAt: at,
});

/** The document of a device that is new. */
export const deviceDocument = (
  projectId: ProjectId,
  id: DeviceId,
  state: DeviceState,
  rest: { readonly credentialHash: string; readonly at: Date },
): DeviceDocument => {
  const {
    environment,
    tokenKind,
    keys,
    vapidKeyId,
    locale,
    userId,
    identifiedAt,
    userTokenIat,
    lastSeenAt,
    inactiveReason: _,
    ...fields
  } = stateFields(state, rest.at);
  return {
    _id: id,
    projectId,
    bucket: deviceBucket(id),
    ...fields,
    ...(environment && { environment }),
    ...(tokenKind && { tokenKind }),
    ...(keys && { keys }),
    ...(vapidKeyId && { vapidKeyId }),
    ...(locale && { locale }),
    ...(userId !== undefined && { userId }),
    ...(identifiedAt && { identifiedAt }),
    ...(userTokenIat !== undefined && { userTokenIat }),
    ...(lastSeenAt && { lastSeenAt }),
    credentialHash: rest.credentialHash,
    version: 1,
    createdAt: rest.at,
  };
};
