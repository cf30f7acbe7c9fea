import {
  type Author,
  type DeviceId,
  type ExpandedV1,
  firstNotificationId,
  type ListRequest,
  maxProposedMs,
  type NotificationContent,
  type NotificationFilter,
  type NotificationId,
  type NotificationStatus,
  type OutboxEvent,
  type PageOf,
  type PersonalTexts,
  type ProjectId,
  type Proposal,
  type SendV1,
  type Tag,
  targetsOfSend,
  userKey,
} from "@herald/contracts";
import {
  type Counts,
  findPage,
  having,
  type IndexSpec,
  indexName,
  indexNames,
  mapPage,
  outboxIndex,
} from "@herald/mongo";
import { kindTag, labelFilterTag, personKeysOf, pushTypeTag, toTags, userKeysOf } from "@herald/rules";
import type { Collection, Db, Filter } from "mongodb";
import { type Expansions, oneExpansion } from "../domain/expansions.ts";
import type { Failures, FinalStatus, Tally } from "../domain/notification-counts.ts";
import type { Claim, EmbeddedRow } from "./delivery-document.ts";

/** Why a notification sends nothing more. A cancel replaces the loss of its message, because either way nothing is sent. */
export type Stop = {
  /** `abandoned`: its message was dead-lettered, and its batches are counted as failed. */
  readonly kind: "cancelled" | "abandoned";
  readonly at: Date;
};

/** Who paused a notification, when and why; `by` is absent: its rollout stopped by itself. It is in any step, and nothing of it is sent. */
export type Paused = { readonly at: Date; readonly by?: Author; readonly reason?: string };

/** Whether a second person agreed. Without `status` it waits, or it needed none in the end. `owner`: the operator of the sender's token. */
export type StoredApproval = Omit<Proposal, "devices"> & {
  readonly expiresAt: Date;
  /** When its time to live would have ended without the proposal. */
  readonly ends: Date;
  /** Of an upload: once it is complete. */
  readonly devices?: number | undefined;
  readonly status?: "approved" | "rejected" | "expired";
  readonly by?: Author;
  readonly at?: Date;
  readonly reason?: string;
};

/** The result of the expansion. */
export type Expanded = {
  readonly batches: number;
  readonly devices: number;
  readonly unmatched: string[];
  /** When the broker stored the end of the expansion, which follows all batches. Absent for a small send, which registry does not partition. */
  readonly at?: Date;
  /** Of a small send with a list of recipients: its last line, how many recipients it has, and the lines without an active device. */
  readonly list?: { readonly lastLine: number; readonly lines: number; readonly unmatched: number[] };
  /** From {@link ExpandedV1}, to find the batch of a device. */
  readonly pages?: ExpandedV1["pages"];
  /** When an expansion was dead-lettered: registry publishes no further batch, and the other fields do not count the earlier ones. */
  readonly lost?: Date;
};

/** The final counts. The final status is the notification's `status`. */
export type End = { readonly at: Date; readonly tally: Tally; readonly failures: Failures };

/** The message for which the rows of a small send are being sent. `open` is false while the rows move to `deliveries`. */
export type Holder = Claim & { readonly open: boolean };

type Facts = {
  _id: NotificationId;
  projectId: ProjectId;
  acceptedAt: Date;
  sendAt?: Date;
  expiresAt: Date;
  /** Its kind and labels; absent: none. */
  tags?: Tag[];
  /** It has a list of recipients instead of targets. */
  listed?: true;
  /** Its list is uploaded. */
  upload?: true;
  /** Herald's own, because a device's token of an activity came late: no list shows it. */
  own?: true;
  /** How many chunks of its list are expanded. */
  pagesExpanded?: number;
  /** How registry expands it; absent: it is a small send. */
  expansions?: Expansions;
  /** When its time was changed last. */
  changedAt?: Date;
  /** As clients see it. `cancelled` from the cancel on, although pushes in flight still have to be counted. */
  status: NotificationStatus;
  stop?: Stop;
  /** Until it is resumed or cancelled. */
  paused?: Paused;
  approval?: StoredApproval;
  expanded?: Expanded;
  /** Until the events of those who have not opened it are published; absent: they are, or its sender did not ask. */
  escalation?: Escalation;
};

/**
 * `after`: seconds from the start to `at`. `nextAt`: when the sweep looks at it. `events`: what was found and is to be published, so that it is
 * the same after a crash.
 */
export type Escalation = {
  readonly after: number;
  readonly at: Date;
  readonly nextAt: Date;
  readonly events?: readonly OutboxEvent[];
};

/** Opens of the last moment are on their way, and the clocks of gateways and of the broker may differ. */
export const escalationGraceMs = 5_000;

/**
 * What a notification waits for; `notification-steps.ts` has the transitions. `nextAt`: when the sweep checks it. A notification without a
 * step has ended.
 */
type Step =
  /** For an operator who approves it, until `approval.expiresAt`. */
  | { step: "approval"; nextAt: Date; end?: undefined }
  /** For the time of its next expansion. */
  | { step: "scheduled"; nextAt: Date; end?: undefined }
  /** For one of its project's places to be expanded. */
  | { step: "accepted"; nextAt?: undefined; end?: undefined }
  /** For registry, which partitions its devices into batches. */
  | { step: "expanding"; nextAt: Date; end?: undefined }
  /** For its rows in `deliveries`. */
  | { step: "delivering"; nextAt: Date; end?: undefined }
  /** A small send: for the process that pushes it. */
  | { step: "sending"; nextAt: Date; claim: Holder; end?: undefined }
  | { step?: undefined; nextAt?: undefined; status: FinalStatus; end: End };

/** A notification without its content, which few steps need. */
export type NotificationState = Facts & Step;

/** A notification as it is listed. */
export type ShownNotification = NotificationState & { readonly content: NotificationContent };

/** A notification with all that its pushes need. */
export type NotificationRecord = ShownNotification & {
  /** The texts that are rendered for each device. */
  readonly personal?: PersonalTexts | undefined;
};

/** A notification as stored. */
export type NotificationDocument = Facts & {
  step?: "approval" | "scheduled" | "accepted" | "expanding" | "delivering" | "sending";
  nextAt?: Date;
  claim?: Holder;
  end?: End;
  /** JSON, because callers choose the keys, and a database does not accept every key. */
  content: string;
  /** {@link PersonalTexts} as JSON; absent: all devices get the texts of `content`. */
  personal?: string;
  /**
   * For the erasure of users: keys of the users among its targets, of a list's only recipient, and of devices and push tokens that its rows
   * do not name; absent: none.
   */
  userKeys?: string[];
  /** The ledger of a small send, unless it had to move to `deliveries`, where the ledgers of all other sends are. */
  rows?: EmbeddedRow[];
  /** A row names a user. */
  named?: true;
  /** The only device of a small send, for its timeline. Not in `recipients`, because an index on an array cannot be read in order. */
  recipient?: DeviceId;
  /** The devices of a small send to several. */
  recipients?: DeviceId[];
  /** It is not completed. */
  byStatus?: true;
  outbox?: OutboxEvent[];
};

/** A notification that was just written, with the events to publish. */
export type OutboxCarrier = Pick<NotificationDocument, "_id" | "projectId" | "outbox">;

export const toRecord = ({
  outbox: _,
  userKeys: __,
  rows: ___,
  named: ____,
  recipient: _____,
  recipients: ______,
  byStatus: _______,
  content,
  personal,
  ...state
}: NotificationDocument): NotificationRecord => ({
  ...toState(state),
  content: JSON.parse(content),
  ...(personal !== undefined && { personal: JSON.parse(personal) }),
});

/** What of a notification only its pushes need: it is several times as large as what is shown. */
export const shownOnly = { personal: 0, outbox: 0, rows: 0, userKeys: 0, recipients: 0 } as const;

/** A document that was read with {@link shownOnly}. */
export const toShown = (document: Omit<NotificationDocument, keyof typeof shownOnly>): ShownNotification =>
  toRecord(document);

/** The database does not check that a document has the fields of its step; the transitions do. */
export const toState = (document: Omit<NotificationDocument, "content">): NotificationState =>
  document as NotificationState;

/** What is proposed lives until it is decided on, and its time to live begins when it is approved. */
const lifeOf = ({ proposal, acceptedAt, expiresAt }: Pick<SendV1, "proposal" | "acceptedAt" | "expiresAt">) => {
  if (!proposal) return { expiresAt: new Date(expiresAt) };
  const until = new Date(Date.parse(acceptedAt) + maxProposedMs);
  return { expiresAt: until, approval: { ...proposal, expiresAt: until, ends: new Date(expiresAt) } };
};

/** The escalation of a notification that begins at a time. */
export const escalationOf = (after: number | undefined, begins: Date): Pick<Facts, "escalation"> => {
  if (after === undefined) return {};
  const at = new Date(begins.getTime() + after * 1_000);
  return { escalation: { after, at, nextAt: new Date(at.getTime() + escalationGraceMs) } };
};

/** The facts of a send, without its status and step. */
export const newFacts = ({ notificationId, projectId, content, ...send }: SendV1): Omit<Facts, "status"> => {
  const { kind, labels, push_type: type, activity } = content;
  const tags = (kind ?? labels ?? type ?? activity) === undefined ? undefined : toTags(content);
  return {
    _id: notificationId,
    projectId,
    acceptedAt: new Date(send.acceptedAt),
    ...(send.sendAt !== undefined && { sendAt: new Date(send.sendAt) }),
    ...lifeOf(send),
    ...escalationOf(content.escalate_after, beginningOf(send)),
    ...(tags && { tags }),
    ...(content.activity?.event === "join" && { own: true as const }),
    ...(content.recipients && { listed: true as const }),
    ...(content.recipients?.upload && { upload: true as const }),
  };
};

/** The only expansion of a send whose devices all get it at the same time. */
export const expansionOf = (send: Pick<SendV1, "sendAt" | "acceptedAt">): Expansions => oneExpansion(beginningOf(send));

export const beginningOf = ({ sendAt, acceptedAt }: Pick<SendV1, "sendAt" | "acceptedAt">): Date =>
  new Date(sendAt ?? acceptedAt);

/** The only recipient of a list. */
const soleRecipient = (send: Pick<SendV1, "content" | "recipients">): string[] =>
  send.recipients?.flat().length === 1 ? targetsOfSend(send) : [];

/** `unnamed`: targets that no row of it names. */
export const newDocument = (
  state: NotificationState,
  send: Pick<SendV1, "content" | "personal" | "recipients">,
  unnamed: readonly string[],
): NotificationDocument => {
  const { projectId } = state;
  const { content, personal } = send;
  const also = [...unnamed, ...soleRecipient(send)];
  const userKeys = userKeysOf(projectId, content.targets);
  if (also.length > 0) userKeys.push(...personKeysOf(projectId, also).filter((key) => !userKeys.includes(key)));
  return {
    ...state,
    content: JSON.stringify(content),
    ...(state.status !== "completed" && { byStatus: true }),
    ...(personal && { personal: JSON.stringify(personal) }),
    ...(userKeys.length > 0 && { userKeys }),
  };
};

const indexes = {
  list: { fields: { projectId: 1, _id: 1 }, purpose: "list" },
  /**
   * Without completed ones, which most are: the list of all finds them. By a field of its own, because PostgreSQL evaluates the condition for
   * each write: `$in` or `$gt` on the status costs more than the entry that it saves.
   */
  status: { fields: { projectId: 1, status: 1, _id: 1 }, purpose: "status", partial: having("byStatus") },
  /** Notifications of a kind or with a label. */
  tags: { fields: { projectId: 1, tags: 1, _id: 1 }, purpose: "list", partial: having("tags") },
  next: { fields: { nextAt: 1 }, purpose: "next", partial: having("nextAt") },
  escalation: { fields: { "escalation.nextAt": 1 }, purpose: "escalation", partial: having("escalation") },
  /** A project's notifications that wait to be expanded or are being expanded, oldest first. By name without `sending`: small sends are many. */
  steps: { fields: { projectId: 1, step: 1, _id: 1 }, purpose: "steps", partial: { step: { $lte: "expanding" } } },
  /** A user's notifications, for lists and for erasure. */
  users: { fields: { projectId: 1, userKeys: 1, _id: 1 }, purpose: "users", partial: having("userKeys") },
  /** For the erasure of a user, which reads all of a project's notifications with embedded rows that name users. */
  named: { fields: { projectId: 1, _id: 1 }, purpose: "named", partial: having("named") },
  /** Device timelines find small sends by recipient, and large sends through their batches. */
  recipient: { fields: { projectId: 1, recipient: 1, _id: 1 }, purpose: "timeline", partial: having("recipient") },
  recipients: { fields: { projectId: 1, recipients: 1, _id: 1 }, purpose: "timeline", partial: having("recipients") },
  large: { fields: { projectId: 1, _id: 1 }, purpose: "large", partial: having("expansions") },
  /** What lists leave out: counted apart, because of other notifications a count reads only the index. */
  own: { fields: { projectId: 1, _id: 1 }, purpose: "own", partial: having("own") },
} as const satisfies Record<string, IndexSpec>;

export const notificationIndexes: readonly IndexSpec[] = [...Object.values(indexes), outboxIndex];

/** An index of all statuses. */
export const retiredNotificationIndexes = [indexName({ ...indexes.status, purpose: "list" })];

/** Names of the indexes, for `hint`. */
export const notificationHints = indexNames(indexes);

export const notificationCollection = (db: Db): Collection<NotificationDocument> => db.collection("notifications");

/** The statuses of notifications that may be paused. A pause does not change what is stored: it is at any step. */
const pausable: readonly NotificationStatus[] = ["scheduled", "accepted", "sending"];

/** As clients see it. */
export const shownStatus = ({ status, paused }: Pick<Facts, "status" | "paused">): NotificationStatus =>
  paused && pausable.includes(status) ? "paused" : status;

const withStatus = (status: NotificationStatus): Filter<NotificationDocument> => {
  if (status === "paused") return { status: { $in: [...pausable] }, paused: { $exists: true } };
  return { status, ...(pausable.includes(status) && { paused: { $exists: false } }) };
};

/** `userId`: only notifications with this user as a target. */
type Wanted = NotificationFilter & { readonly userId?: string | undefined };

/** A page of a project's notifications that match all filters. */
export const listNotifications =
  (notifications: Collection<NotificationDocument>, counts: Counts) =>
  async (
    projectId: ProjectId,
    { status, userId, kind, label, push_type: type }: Wanted,
    request: ListRequest,
  ): Promise<PageOf<ShownNotification>> => {
    const tags = [
      ...(label === undefined ? [] : [labelFilterTag(label)]),
      ...(kind === undefined ? [] : [kindTag(kind)]),
      ...(type === undefined ? [] : [pushTypeTag(type)]),
    ];
    const all = userId === undefined && tags.length === 0;
    const byStatus = all && status !== undefined && status !== "completed";
    const filter = {
      projectId,
      ...(status !== undefined && withStatus(status)),
      ...(byStatus && having("byStatus")),
      ...(userId !== undefined && { userKeys: userKey(projectId, userId) }),
      // MongoDB uses a partial index only for a query that requires the field to exist.
      ...(tags.length > 0 && { tags: { $exists: true, $all: tags } }),
    } as Filter<NotificationDocument>;
    const byTag = tags.length > 0 ? notificationHints.tags : undefined;
    const ofAll = byStatus ? notificationHints.status : notificationHints.list;
    const hint = userId === undefined ? (byTag ?? ofAll) : notificationHints.users;
    const without = { field: "own", hint: notificationHints.own };
    const allBut =
      all && status === "completed"
        ? { filter: { projectId }, except: having("byStatus"), hint: notificationHints.status }
        : undefined;
    const options = { filter, without, allBut, hint, firstId: firstNotificationId, request, counts };
    return mapPage(await findPage(notifications, { ...options, projection: shownOnly }), toShown);
  };
