import {
  type DeliverBatchV1,
  erasedUser,
  type Lane,
  type NotificationId,
  type OutboxEvent,
  otherProvider,
  type Platform,
  type ProjectId,
  type Provider,
  type Recipient,
  type Tag,
} from "@herald/contracts";
import { type IndexSpec, indexName, outboxIndex } from "@herald/mongo";
import type { Binary, Collection, Db } from "mongodb";
import { rootGeneration } from "../domain/batch-ids.ts";
import { type Failures, noDevices, type Tally } from "../domain/counts.ts";
import type { DeviceResult } from "../domain/result-table.ts";
import type { Sendable, Waiting } from "../domain/settle-batch.ts";
import { packIds } from "./packed-ids.ts";
import { packNames, unpackNames } from "./packed-names.ts";

/** The batch of a row. */
export type BatchFacts = {
  _id: string;
  projectId: ProjectId;
  notificationId: NotificationId;
  platform: Platform;
  /** Absent: the platform's own. */
  provider?: Provider;
  lane: Lane;
  /** 1 for a batch that registry partitioned; each row for what had to wait is one more. */
  generation: number;
  /** Kind and labels of its notification, which its events carry; absent: none. */
  tags?: readonly Tag[];
};

export type DeliveryDocument = BatchFacts & {
  /**
   * `started`: being sent, or its process died; `waiting`: to be sent at `dueAt`; `settled`: its outcomes are written and
   * its child is still to be stored; `final`.
   */
  state: "started" | "waiting" | "settled" | "final";
  /** Which message the row is being sent for: only a redelivery of that one may send it again. When its stream took it … */
  claim?: number;
  /** … and its number there; absent, which filters call null, in rows of earlier versions. */
  claimSequence?: number | null;
  /** How often it was started: only the last process that started it may write outcomes. */
  starts: number;
  startedAt?: Date;
  /** All of its devices, sorted, in the packed form. */
  deviceIds: string;
  firstDeviceId: string;
  lastDeviceId: string;
  /** Whose the devices were when the audience was read, packed; absent where none had a user. */
  users?: string;
  /** The devices that are counted in this row; before it is settled that is all of them. */
  tally: Tally;
  failures?: Failures;
  results?: DeviceResult[];
  /** One byte a device: the index of its result. */
  resultOf?: Binary;
  /** The provider's names for the messages that it accepted, packed; absent where it gave none. */
  providerIds?: string;
  /** When the row was made. */
  storedAt: Date;
  settledAt?: Date;
  /** With their tokens, only while they are still to be sent. */
  devices?: Sendable[];
  dueAt?: Date;
  notBefore?: Date;
  /** It waits for the provider's settings. */
  paused?: true;
  /** What goes on, until it has a row of its own. */
  child?: Waiting;
  /** The number of its devices, so that counting does not read them. */
  childSize?: number;
  outbox?: OutboxEvent[];
};

/** A row of the ledger inside of its notification: without what that says, and what is the same for all. */
export type EmbeddedRow = Omit<
  DeliveryDocument,
  "projectId" | "notificationId" | "lane" | "generation" | "tags" | "claim" | "claimSequence" | "starts" | "outbox"
>;

/** A message that a row is sent for. */
export type Claim = { readonly at: number; readonly sequence: number };

/** The claim that the dead-letter handler has on a row. */
export const deadLetterClaim: Claim = { at: 0, sequence: 0 };

/** In a filter: the row is being sent for this message. */
export const claimedBy = ({ at, sequence }: Claim) => ({
  state: "started" as const,
  claim: at,
  claimSequence: { $in: [sequence, null] },
});

/** A row that this process has started, and may settle. */
export type Run = BatchFacts & {
  readonly devices: readonly Sendable[];
  readonly starts: number;
  readonly startedAt: Date;
  /**
   * Its message is acked after its events are published, and brings it back until then: what the row tells by itself is made again
   * from it, and not stored beside it.
   */
  readonly publishedBeforeAck?: true;
};

const devicesIndex: IndexSpec = { fields: { notificationId: 1, firstDeviceId: 1, _id: 1 }, purpose: "devices" };
const finishIndex: IndexSpec = { fields: { notificationId: 1, state: 1, generation: 1 }, purpose: "finish" };
const dueIndex: IndexSpec = { fields: { dueAt: 1 }, purpose: "due", partial: { dueAt: { $exists: true } } };
/** What waits of a project's platform: new settings wake it. */
const waitingIndex: IndexSpec = {
  fields: { projectId: 1, platform: 1, dueAt: 1 },
  purpose: "resume",
  partial: { dueAt: { $exists: true } },
};

/** For the erasure of a user, which looks at all of a project's rows that name any. */
const usersIndex: IndexSpec = {
  fields: { projectId: 1, _id: 1 },
  purpose: "users",
  partial: { users: { $exists: true } },
};

export const deliveryIndexes = [devicesIndex, finishIndex, dueIndex, waitingIndex, usersIndex, outboxIndex];

/** Names of the indexes, for `hint`. */
export const deliveryHints = {
  devices: indexName(devicesIndex),
  finish: indexName(finishIndex),
  due: indexName(dueIndex),
  resume: indexName(waitingIndex),
  users: indexName(usersIndex),
} as const;

export const deliveryCollection = (db: Db): Collection<DeliveryDocument> => db.collection("deliveries");

export const factsOf = (batch: BatchFacts): BatchFacts => {
  const { _id, projectId, notificationId, platform, lane, generation, tags } = batch;
  const served = { platform, ...otherProvider(batch) };
  return { _id, projectId, notificationId, ...served, lane, generation, ...(tags && { tags }) };
};

/** The user of a device, unless that was erased. */
export const ownerOf = ({ userId }: Pick<Recipient, "userId">): string | undefined =>
  userId === erasedUser ? undefined : userId;

export const packOwners = (owners: readonly (string | undefined)[]): string | undefined => packNames(owners);

/** Whose the devices of a row were, by their places; empty where none had a user. */
export const ownersOf = ({ users }: Pick<DeliveryDocument, "users">): readonly (string | undefined)[] =>
  users === undefined || users === "" ? [] : unpackNames(users);

export const packed = (devices: readonly Pick<Recipient, "id" | "userId">[]) => {
  const users = packOwners(devices.map(ownerOf));
  return {
    deviceIds: packIds(devices.map(({ id }) => id)),
    firstDeviceId: devices[0]?.id ?? "",
    lastDeviceId: devices.at(-1)?.id ?? "",
    ...(users !== undefined && { users }),
  };
};

export const fresh = ({ devices }: DeliverBatchV1, repeat: boolean): Sendable[] =>
  devices.map((device) => ({ ...device, attempts: 0, repeat }));

/** The row of a batch as registry partitioned it. */
export const rootOf = (batch: DeliverBatchV1): BatchFacts => ({
  _id: batch.batchId,
  projectId: batch.projectId,
  notificationId: batch.notificationId,
  platform: batch.platform,
  ...otherProvider(batch),
  lane: batch.lane,
  generation: rootGeneration,
});

/** `keepDevices`: a redelivery of its message does not bring them along. `tags`: of its notification. */
export const newRow = (
  batch: DeliverBatchV1,
  {
    claim,
    now,
    keepDevices = false,
    tags,
  }: { claim: Claim; now: Date; keepDevices?: boolean; tags?: readonly Tag[] | undefined },
): DeliveryDocument => ({
  ...rootOf(batch),
  ...(tags && { tags }),
  state: "started",
  claim: claim.at,
  claimSequence: claim.sequence,
  starts: 1,
  startedAt: now,
  storedAt: now,
  ...packed(batch.devices),
  tally: { ...noDevices, devices: batch.devices.length },
  ...(keepDevices ? { devices: fresh(batch, false) } : {}),
});
