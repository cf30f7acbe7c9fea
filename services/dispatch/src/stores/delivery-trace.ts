import type {
  Delivery,
  DeliveryAttempt,
  DeviceId,
  NotificationContent,
  NotificationId,
  ProjectId,
  Tag,
} from "@herald/contracts";
import { findByIds, guardStore } from "@herald/mongo";
import type { Db } from "mongodb";
import type { DeviceResult } from "../domain/result-table.ts";
import { type RuleResult, ruleResultAt } from "../domain/rule-results.ts";
import { ownWait, type Sendable } from "../domain/settle-row.ts";
import { type DeliveryDocument, ownersOf, packedAt, resultAt, ruleResultsOf } from "./delivery-document.ts";
import { deliveriesOf } from "./delivery-list.ts";
import { notificationCollection } from "./notification-document.ts";
import { createRows, type DeviceRow } from "./rows.ts";

/** The attempts of a device before a row, and whether one of them may have reached it. */
type Known = { readonly attempts: number; readonly repeat: boolean };

/** The attempt of a settled row. Undefined when the device only waited there. `ruleResult`: what rules said of it there. */
const settledAttempt = (
  { attempts, repeat }: Known,
  at: string,
  { status, reason, providerReason, possibleRepeat, ...result }: DeviceResult,
  { provider_id: providerId }: Pick<Delivery, "provider_id">,
  { until, end }: Partial<RuleResult> = {},
): DeliveryAttempt | undefined => {
  const counted = result.attempts > attempts;
  const sent = counted || result.unprocessed;
  if (status === "deferred" && until) {
    const delay = { outcome: "delayed", reason: "quiet-hours", until: until.toISOString() } as const;
    return { at, ...delay, possible_repeat: possibleRepeat };
  }
  // It waited for its server, or for new settings after the provider had refused an earlier row.
  if (status === "deferred" && !sent && providerReason === undefined && reason !== "paused") return undefined;
  const unanswered = possibleRepeat && !repeat;
  const waits = result.blocked ? "blocked" : "paused";
  return {
    ...(counted && { attempt: result.attempts }),
    at,
    outcome: status !== "deferred" ? status : !sent ? waits : unanswered ? "unknown" : "deferred",
    ...(reason !== undefined && { reason }),
    ...(providerReason !== undefined && { provider_reason: providerReason }),
    ...(providerId !== undefined && { provider_id: providerId }),
    ...(status === "skipped" && end && { until: end.toISOString() }),
    possible_repeat: possibleRepeat,
  };
};

/** A server that takes no push is probed once a minute or more often: of one reason, the trace has the last time. */
const isSameBlock = (one: DeliveryAttempt, before: DeliveryAttempt | undefined): boolean =>
  one.outcome === "blocked" && before?.outcome === "blocked" && one.provider_reason === before.provider_reason;

/** A waiting device is tried when its row is due, or later if it must wait longer than other devices there. Held, it waits for a person. */
const nextAttempt = (
  { dueAt, held }: Pick<DeliveryDocument, "dueAt" | "held">,
  device: Sendable | undefined,
): Date | undefined => (dueAt && !held ? new Date(Math.max(dueAt.getTime(), device ? ownWait(device) : 0)) : undefined);

/** What rules said of a device in this row; undefined: it gets the push. */
const ruleResultOf = (row: DeliveryDocument, index: number): RuleResult | undefined => {
  const { ruleResults } = ruleResultsOf(row);
  return ruleResults && ruleResultAt(ruleResults, index);
};

/** The delivery of a device, its attempts, oldest first, and the time of the next attempt, from its rows, root row first. */
export const traceOf = (rows: readonly DeviceRow[]) => {
  const attempts: DeliveryAttempt[] = [];
  let known: Known = { attempts: 0, repeat: false };
  let delivery: Delivery | undefined;
  let nextAttemptAt: Date | undefined;
  for (const { row, index } of rows) {
    delivery = deliveriesOf(row)(index);
    const result = resultAt(row, index);
    // A settled row has `child` until that has a row of its own.
    nextAttemptAt =
      row.state === "waiting"
        ? nextAttempt(row, row.devices?.[index])
        : result?.status === "deferred" && row.child
          ? nextAttempt(
              row.child,
              row.child.devices.find(({ id }) => id === delivery?.device_id),
            )
          : undefined;
    if (row.state === "started") {
      const at = (row.startedAt ?? row.storedAt).toISOString();
      const possibleRepeat = row.devices?.[index]?.repeat ?? false;
      attempts.push({ attempt: known.attempts + 1, at, outcome: "sending", possible_repeat: possibleRepeat });
    }
    if (!result) continue;
    const attempt = settledAttempt(known, delivery.at, result, delivery, ruleResultOf(row, index));
    if (attempt && isSameBlock(attempt, attempts.at(-1))) attempts.pop();
    if (attempt) attempts.push(attempt);
    known = { attempts: result.attempts, repeat: result.possibleRepeat };
  }
  return { ...(delivery && { delivery }), attempts, ...(nextAttemptAt && { nextAttemptAt }) };
};

/** Finds one device in the ledger of a notification. */
export const createDeliveryTrace = (db: Db) => {
  const { sourceOf, rowsOfDevice } = createRows(db);
  return guardStore({
    /** The delivery of a device and its attempts, oldest first, from the root row and its children. */
    trace: async (projectId: ProjectId, notificationId: NotificationId, id: DeviceId) => {
      const source = await sourceOf(projectId, notificationId);
      const rows = source ? await rowsOfDevice(projectId, [source], id) : undefined;
      return traceOf(rows?.get(notificationId) ?? []);
    },
  });
};

/** The largest audience, in batches, that is searched for the users of devices: up to 16,000 devices. Larger audiences are skipped. */
const maxBatches = 16;

export type DeliveryOf = { readonly notificationId: NotificationId; readonly deviceId: DeviceId };

/** Finds the users that devices had when a notification was sent to them. */
export const createDeliveryUsers = (db: Db) => {
  const notifications = notificationCollection(db);
  const { rowsWithUsers, countRoots } = createRows(db);

  const findNotifications = (projectId: ProjectId, ids: readonly NotificationId[]) =>
    findByIds(notifications, ids, { projectId }, { projection: { "expanded.batches": 1, tags: 1 } });

  /** The notifications whose audience is small enough to search. */
  const smallOnes = async (
    projectId: ProjectId,
    found: Awaited<ReturnType<typeof findNotifications>>,
  ): Promise<NotificationId[]> => {
    const small = found.map(async ({ _id, expanded }) => {
      const batches = expanded?.batches ?? (await countRoots(projectId, _id, maxBatches + 1));
      return batches <= maxBatches ? [_id] : [];
    });
    return (await Promise.all(small)).flat();
  };

  const buttonIds = async (projectId: ProjectId, ids: readonly NotificationId[]): Promise<Record<string, string[]>> => {
    if (ids.length === 0) return {};
    const found = await findByIds(notifications, ids, { projectId }, { projection: { content: 1 } });
    return Object.fromEntries(
      found.flatMap(({ _id, content }) => {
        const { buttons } = JSON.parse(content) as NotificationContent;
        return buttons ? [[_id, buttons.map(({ id }) => id)]] : [];
      }),
    );
  };

  return guardStore({
    /**
     * `users` in the order of `asked`; null: no user, or a large audience. `tags` by notification, only for notifications with tags.
     * `buttons`: the ids of the buttons of `buttonsOf`.
     */
    usersOf: async (
      projectId: ProjectId,
      asked: readonly DeliveryOf[],
      buttonsOf: readonly NotificationId[] = [],
    ): Promise<{ users: (string | null)[]; tags: Record<string, Tag[]>; buttons: Record<string, string[]> }> => {
      const buttons = await buttonIds(projectId, buttonsOf);
      const found = await findNotifications(projectId, [...new Set(asked.map(({ notificationId }) => notificationId))]);
      const users = new Map<string, string>();
      for (const row of await rowsWithUsers(projectId, await smallOnes(projectId, found)))
        for (const [at, user] of ownersOf(row).entries())
          if (user !== undefined) users.set(`${row.notificationId}/${packedAt(row.deviceIds, at)}`, user);
      return {
        users: asked.map(({ notificationId, deviceId }) => users.get(`${notificationId}/${deviceId}`) ?? null),
        tags: Object.fromEntries(found.flatMap(({ _id, tags }) => (tags ? [[_id, tags]] : []))),
        buttons,
      };
    },
  });
};
