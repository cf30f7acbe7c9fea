import {
  type DeliverBatchV1,
  type DeliveryReason,
  type DeviceId,
  erasedUser,
  type Lane,
  type NotificationId,
  type OutboxEvent,
  otherProvider,
  type Platform,
  type ProjectId,
  type Provider,
  platformOf,
  providersOf,
  type Recipient,
  type Tag,
} from "@herald/contracts";
import { having, type IndexSpec, indexNames, outboxIndex } from "@herald/mongo";
import { Binary, type Collection, type Db } from "mongodb";
import { rootGeneration } from "../domain/batch.ts";
import { emptyTally, type Failures, type Tally } from "../domain/notification-counts.ts";
import type { DeviceResult } from "../domain/result-table.ts";
import type { RuleResult, RuleResults } from "../domain/rule-results.ts";
import type { Sendable, Waiting } from "../domain/settle-row.ts";

/** The batch of a row. */
export type BatchFacts = {
  _id: string;
  projectId: ProjectId;
  notificationId: NotificationId;
  platform: Platform;
  /** Absent: the platform's own provider. */
  provider?: Provider;
  lane: Lane;
  /** 1 for a batch as registry partitioned it. Each child row, for devices that must wait, is one generation more. */
  generation: number;
  /** Kind and labels of its notification, which its events carry; absent: none. */
  tags?: readonly Tag[];
  /** No push starts after this; absent: the notification's `expiresAt`. */
  expiresAt?: Date;
  /** Nothing is sent to its devices, for this reason. */
  skip?: DeliveryReason;
};

export type DeliveryDocument = BatchFacts & {
  /**
   * `started`: being sent, or its process died; `waiting`: to be sent at `dueAt`; `settled`: its outcomes are written, but
   * its child is not stored yet; `final`: nothing is left to do.
   */
  state: "started" | "waiting" | "settled" | "final";
  /** The message for which the row is being sent: only a redelivery of it may send the row again. */
  claim?: Claim;
  /** How often the row was started: only the last process that started it may write outcomes. */
  starts: number;
  startedAt?: Date;
  /** All of its devices, sorted, in the packed form. */
  deviceIds: string;
  firstDeviceId: string;
  lastDeviceId: string;
  /** The users of the devices when the audience was read, packed. Absent: no device had a user. */
  users?: string;
  /** Counts of the devices that this row counts: until it is settled, all of its devices. */
  tally: Tally;
  failures?: Failures;
  results?: DeviceResult[];
  /** One byte per device: the index of its result in `results`. */
  resultOf?: Binary;
  /** The provider's ids of the messages that it accepted, packed. Absent: the provider returned none. */
  providerIds?: string;
  /** When the row was created. */
  storedAt: Date;
  settledAt?: Date;
  /** The devices with their tokens, only until the row is settled. */
  devices?: Sendable[];
  dueAt?: Date;
  notBefore?: Date;
  /** The row waits for new provider settings. */
  paused?: true;
  /** The row waits until its notification, its project or all sends are resumed, and is due when its pushes expire. */
  held?: true;
  /** The devices that wait, until their child row is stored. */
  child?: Waiting;
  /** What the project's rules said of its devices before they got a push; absent: all of them get it. */
  decided?: { list: RuleResult[]; of: Binary };
  /** How many devices `child` has, so that counting does not read them. */
  childSize?: number;
  outbox?: OutboxEvent[];
};

/** A ledger row embedded in its notification, without the fields that the notification has or that are the same for all such rows. */
export type EmbeddedRow = Omit<
  DeliveryDocument,
  "projectId" | "notificationId" | "lane" | "generation" | "tags" | "claim" | "starts" | "outbox"
>;

/** Identifies the message for which a row is sent: when its stream stored it, and its sequence number there. */
export type Claim = { readonly at: number; readonly sequence: number };

/** The claim of a message, equal for all its redeliveries. The time alone is not enough, because two messages can share it. */
export const claimOf = ({ publishedAt, sequence }: { publishedAt: Date; sequence: number }): Claim => ({
  at: publishedAt.getTime(),
  sequence,
});

export const isSameClaim = (one: Claim | undefined, { at, sequence }: Claim): boolean =>
  one?.at === at && one.sequence === sequence;

/** The dead-letter handler's claim on a row. */
export const deadLetterClaim: Claim = { at: 0, sequence: 0 };

/** In a filter: the row is being sent for this message. */
export const claimedBy = ({ at, sequence }: Claim) => ({
  state: "started" as const,
  "claim.at": at,
  "claim.sequence": sequence,
});

/** A row that this process has started, and may settle. */
export type Run = BatchFacts & {
  readonly devices: readonly Sendable[];
  readonly starts: number;
  readonly startedAt: Date;
  readonly ruleResults?: RuleResults;
  /**
   * Its message is acked after its events are published, and redelivered until then. So events that can be rebuilt from the row are
   * not stored in it.
   */
  readonly publishedBeforeAck?: true;
};

const indexes = {
  devices: { fields: { notificationId: 1, firstDeviceId: 1, _id: 1 }, purpose: "devices" },
  finish: { fields: { notificationId: 1, state: 1, generation: 1 }, purpose: "finish" },
  due: { fields: { dueAt: 1 }, purpose: "due", partial: having("dueAt") },
  /** Waiting rows of a project's platform: new settings make them due. */
  resume: { fields: { projectId: 1, platform: 1, dueAt: 1 }, purpose: "resume", partial: having("dueAt") },
  /** Rows that a resume makes due. */
  held: { fields: { projectId: 1, notificationId: 1 }, purpose: "held", partial: having("held") },
  /** For the erasure of a user, which reads all of a project's rows that name users. */
  users: { fields: { projectId: 1, _id: 1 }, purpose: "users", partial: having("users") },
} as const satisfies Record<string, IndexSpec>;

export const deliveryIndexes: readonly IndexSpec[] = [...Object.values(indexes), outboxIndex];

/** Names of the indexes, for `hint`. */
export const deliveryHints = indexNames(indexes);

export const deliveryCollection = (db: Db): Collection<DeliveryDocument> => db.collection("deliveries");

export const factsOf = (batch: BatchFacts): BatchFacts => {
  const { _id, projectId, notificationId, platform, lane, generation, tags, expiresAt, skip } = batch;
  const served = { platform, ...otherProvider(batch) };
  const ofWave = { ...(expiresAt && { expiresAt }), ...(skip && { skip }) };
  return { _id, projectId, notificationId, ...served, lane, generation, ...(tags && { tags }), ...ofWave };
};

/** The user of a device, unless the user was erased. */
export const ownerOf = ({ userId }: Pick<Recipient, "userId">): string | undefined =>
  userId === erasedUser ? undefined : userId;

/** The users of a row's devices, by index. Empty when no device had a user. */
export const ownersOf = ({ users }: Pick<DeliveryDocument, "users">): readonly (string | undefined)[] =>
  users === undefined || users === "" ? [] : unpackNames(users);

export const packed = (devices: readonly Pick<Recipient, "id" | "userId">[]) => {
  const users = packNames(devices.map(ownerOf));
  return {
    deviceIds: packDeviceIds(devices.map(({ id }) => id)),
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
  ...(batch.expiresAt !== undefined && { expiresAt: new Date(batch.expiresAt) }),
  ...(batch.skip !== undefined && { skip: batch.skip as DeliveryReason }),
});

/** `keepDevices`: stores the devices, because its message does not contain them. `tags`: of its notification. */
export const newRow = (
  batch: DeliverBatchV1,
  {
    claim,
    now,
    keepDevices = false,
    tags,
    ruleResults,
  }: {
    claim: Claim;
    now: Date;
    keepDevices?: boolean;
    tags?: readonly Tag[] | undefined;
    ruleResults?: RuleResults | undefined;
  },
): DeliveryDocument => ({
  ...rootOf(batch),
  ...(tags && { tags }),
  state: "started",
  claim,
  starts: 1,
  startedAt: now,
  storedAt: now,
  ...packed(batch.devices),
  tally: { ...emptyTally, devices: batch.devices.length },
  ...(keepDevices ? { devices: fresh(batch, false) } : {}),
  ...(ruleResults && { decided: toStoredResults(ruleResults) }),
});

export const toStoredResults = ({ list, of }: RuleResults) => ({ list: [...list], of: new Binary(of) });

/** In a run: the results of the rules for its devices. */
export const ruleResultsOf = ({ decided }: Pick<DeliveryDocument, "decided">): Pick<Run, "ruleResults"> =>
  decided ? { ruleResults: { list: decided.list, of: decided.of.value() as Uint8Array } } : {};

/** The run of a row that contains its devices. */
export const runOf = (row: DeliveryDocument, startedAt: Date): Run => ({
  ...factsOf(row),
  ...{ startedAt, starts: row.starts, devices: row.devices ?? [], ...ruleResultsOf(row) },
});

/** Filters for the rows that a provider serves: rows of its own platform, and rows of other platforms that name it. */
export const servedBy = (provider: Provider) => {
  const others = (Object.keys(providersOf) as Platform[]).filter(
    (platform) => platform !== platformOf[provider] && providersOf[platform].includes(provider),
  );
  const own = { platform: platformOf[provider], provider: { $exists: false } };
  return others.length === 0 ? [own] : [own, { platform: { $in: others }, provider }];
};

/** The result of a device in a settled row. */
export const resultAt = ({ results, resultOf }: DeliveryDocument, index: number): DeviceResult | undefined =>
  results?.[resultOf?.value()[index] ?? 0];

const prefix = "dev_";
const bodyLength = 26;

/** Packs device ids into one string of 26 characters each. A row of 500 devices is a third smaller than with an array. */
export const packDeviceIds = (ids: readonly DeviceId[]): string => ids.map((id) => id.slice(prefix.length)).join("");

export const packedCount = (packed: string): number => packed.length / bodyLength;

export const packedAt = (packed: string, index: number): DeviceId =>
  `${prefix}${packed.slice(index * bodyLength, (index + 1) * bodyLength)}`;

/**
 * Packs one optional name per device, such as a provider's message id, into one string: the common prefix, then one line per device
 * with the rest of its name (empty: no name). FCM's names begin with the project, so a row of 500 devices is half as large.
 * Undefined when no entry has a name. Names must not contain line breaks.
 */
export const packNames = (names: readonly (string | undefined)[]): string | undefined => {
  let common: string | undefined;
  for (const name of names) {
    if (!name) continue;
    common ??= name.slice(0, -1);
    // The prefix never includes a name's last character: an empty line means that there is no name.
    const max = Math.min(common.length, name.length - 1);
    let same = 0;
    while (same < max && common.charCodeAt(same) === name.charCodeAt(same)) same++;
    if (same < common.length) common = common.slice(0, same);
  }
  if (common === undefined) return undefined;
  const { length } = common;
  return [common, ...names.map((name) => name?.slice(length) ?? "")].join("\n");
};

/** The names by device. */
export const unpackNames = (packed: string): (string | undefined)[] => {
  const [common = "", ...rests] = packed.split("\n");
  return rests.map((rest) => (rest === "" ? undefined : common + rest));
};
