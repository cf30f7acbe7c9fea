import type { DeviceId, NotificationContent } from "@herald/contracts";
import { findSome, guardStore } from "@herald/mongo";
import type { Db } from "mongodb";
import { collectUnopened, type UnopenedBy } from "../domain/unopened.ts";
import { ownersOf, packedAt, packedCount, resultAt } from "./delivery-document.ts";
import {
  type Escalation,
  type NotificationState,
  notificationCollection,
  notificationHints,
} from "./notification-document.ts";
import { checkAfter } from "./notification-steps.ts";
import { createRows, rowSourceFields } from "./rows.ts";

/** A notification whose sender wants to know now who has not opened it. */
export type DueEscalation = Pick<NotificationState, "_id" | "projectId" | "tags"> & { readonly escalation: Escalation };

/** Few: each reads all rows of its notification, and sends go first. */
const atATime = 8;

const read = { ...rowSourceFields, content: 1, step: 1, stop: 1 } as const;

/** Notifications whose sender wants to know who has not opened them. */
export const createEscalationStore = (db: Db) => {
  const notifications = notificationCollection(db);
  const { rowsOf } = createRows(db);

  return guardStore({
    /** Claims a few that are due, for a minute. Of two callers, only the first gets a notification. */
    takeDue: async (now: Date): Promise<DueEscalation[]> => {
      const due = await findSome(
        notifications,
        { escalation: { $exists: true }, "escalation.nextAt": { $lte: now } },
        {
          ...{ hint: notificationHints.escalation, sort: { "escalation.nextAt": 1 }, limit: atATime },
          projection: { projectId: 1, tags: 1, escalation: 1 },
        },
      );
      const nextAt = checkAfter(now);
      const claim = async ({ escalation, ...document }: (typeof due)[number]): Promise<DueEscalation[]> => {
        if (!escalation) return [];
        const { _id, projectId } = document;
        const known = { _id, projectId, "escalation.nextAt": escalation.nextAt };
        const { modifiedCount } = await notifications.updateOne(known, { $set: { "escalation.nextAt": nextAt } });
        return modifiedCount === 1 ? [{ ...document, escalation: { ...escalation, nextAt } }] : [];
      };
      return (await Promise.all(due.map(claim))).flat();
    },

    /**
     * Who has not opened it; none if it was cancelled. Undefined while its audience is not known, or a process pushes it.
     * `openedOf`: the devices that opened it, of up to 1,000.
     */
    unopened: async (
      { _id, projectId }: DueEscalation,
      openedOf: (devices: DeviceId[]) => Promise<ReadonlySet<string>>,
    ): Promise<readonly UnopenedBy[] | undefined> => {
      const document = await notifications.findOne({ _id, projectId }, { projection: read });
      if (!document || document.stop?.kind === "cancelled") return [];
      if (!document.expanded || document.step === "sending") return undefined;
      const { targets }: NotificationContent = JSON.parse(document.content);
      const unopened = collectUnopened(targets, document.expanded.lost ? "not-delivered" : "no-active-device");
      for await (const row of rowsOf(document)) {
        const owners = ownersOf(row);
        const ids = Array.from({ length: packedCount(row.deviceIds) }, (_, at) => packedAt(row.deviceIds, at));
        const opened = await openedOf(ids);
        for (const [at, id] of ids.entries())
          unopened.add({
            ...{ id, userId: owners[at], opened: opened.has(id) },
            accepted: resultAt(row, at)?.status === "accepted",
          });
      }
      return unopened.list();
    },

    /** Its events are published. */
    end: async ({ _id, projectId, escalation: { nextAt } }: DueEscalation): Promise<void> => {
      await notifications.updateOne({ _id, projectId, "escalation.nextAt": nextAt }, { $unset: { escalation: "" } });
    },
  });
};
