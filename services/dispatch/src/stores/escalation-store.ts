import type { DeviceId, NotificationContent, OutboxEvent } from "@herald/contracts";
import { findSome, guardStore } from "@herald/mongo";
import type { Db } from "mongodb";
import { collectUnopened, type UnopenedBy } from "../domain/unopened.ts";
import { ownersOf, packedAt, packedCount, resultAt } from "./delivery-document.ts";
import {
  type Escalation,
  type NotificationDocument,
  notificationCollection,
  notificationHints,
} from "./notification-document.ts";
import { checkAfter } from "./notification-steps.ts";
import { createRows, rowSourceFields } from "./rows.ts";

type Read = "_id" | "projectId" | "tags" | "content" | "rows" | "claim" | "expanded" | "stop" | "end";

/** A notification whose sender wants to know now who has not opened it. */
export type DueEscalation = Pick<NotificationDocument, Read> & { readonly escalation: Escalation };

/** Few: each reads all rows of its notification, and sends go first. */
const atATime = 8;

const read = { ...rowSourceFields, tags: 1, content: 1, step: 1, stop: 1, end: 1, escalation: 1 } as const;

/** A minute, or a tenth of the delay: what waits for long is read seldom. */
const nextLook = ({ at }: Escalation, now: Date): Date =>
  new Date(Math.max(checkAfter(now).getTime(), now.getTime() + (now.getTime() - at.getTime()) / 10));

/** Notifications whose sender wants to know who has not opened them. */
export const createEscalationStore = (db: Db) => {
  const notifications = notificationCollection(db);
  const { countRoots, rowsOf } = createRows(db);

  return guardStore({
    /**
     * Claims a few that are due, for a minute or longer. Of two callers, only the first gets a notification. Those whose audience is not known
     * yet, or that a process is pushing, are looked at again later. `more`: others may be due.
     */
    takeDue: async (now: Date): Promise<{ readonly taken: DueEscalation[]; readonly more: boolean }> => {
      const due = await findSome(
        notifications,
        { escalation: { $exists: true }, "escalation.nextAt": { $lte: now } },
        {
          ...{ hint: notificationHints.escalation, sort: { "escalation.nextAt": 1 }, limit: atATime },
          projection: read,
        },
      );
      const claim = async ({ escalation, ...document }: (typeof due)[number]): Promise<DueEscalation[]> => {
        if (!escalation) return [];
        const { _id, projectId, expanded, step, stop, end } = document;
        const known = { _id, projectId, "escalation.nextAt": escalation.nextAt };
        const nextAt = nextLook(escalation, now);
        const { modifiedCount } = await notifications.updateOne(known, { $set: { "escalation.nextAt": nextAt } });
        const isReady = end || stop?.kind === "cancelled" || (expanded && step !== "sending");
        return modifiedCount === 1 && isReady ? [{ ...document, escalation }] : [];
      };
      return { taken: (await Promise.all(due.map(claim))).flat(), more: due.length === atATime };
    },

    /**
     * Who has not opened it. Empty: everyone has, or it was cancelled. Undefined while some of its devices have no row yet. `openedOf`: the devices that opened
     * it, of up to 1,000.
     */
    unopened: async (
      due: DueEscalation,
      openedOf: (devices: DeviceId[]) => Promise<ReadonlySet<string>>,
    ): Promise<readonly UnopenedBy[] | undefined> => {
      const { _id, projectId, content, expanded, rows, stop, end } = due;
      if (!expanded || stop?.kind === "cancelled") return [];
      const { batches, lost } = expanded;
      if (!rows && !end && !lost && (await countRoots(projectId, _id, batches)) < batches) return undefined;
      const { targets }: NotificationContent = JSON.parse(content);
      const all = collectUnopened(targets, lost ? "not-delivered" : "no-active-device");
      for await (const row of rowsOf(due)) {
        const owners = ownersOf(row);
        const ids = Array.from({ length: packedCount(row.deviceIds) }, (_, at) => packedAt(row.deviceIds, at));
        const opened = await openedOf(ids);
        for (const [at, id] of ids.entries())
          all.add({
            ...{ id, userId: owners[at], opened: opened.has(id) },
            accepted: resultAt(row, at)?.status === "accepted",
          });
      }
      return all.list();
    },

    /**
     * Stores what is to be published. False when another process did, or it was cancelled, begun again, or one of its targets was erased, since
     * it was claimed.
     */
    decide: async ({ _id, projectId, content, escalation: { at } }: DueEscalation, events: readonly OutboxEvent[]) => {
      const { modifiedCount } = await notifications.updateOne(
        {
          ...{ _id, projectId, content, "stop.kind": { $ne: "cancelled" } },
          ...{ "escalation.at": at, "escalation.events": { $exists: false } },
        },
        { $set: { "escalation.events": [...events] } },
      );
      return modifiedCount === 1;
    },

    /** Its events are published. */
    end: async ({ _id, projectId, escalation: { at } }: DueEscalation): Promise<void> => {
      await notifications.updateOne({ _id, projectId, "escalation.at": at }, { $unset: { escalation: "" } });
    },
  });
};
