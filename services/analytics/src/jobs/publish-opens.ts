import { type Bus, publishEvents, sendRequest } from "@herald/bus";
import { type ProjectId, UsersOfDeliveries } from "@herald/contracts";
import { type Open, openedEvent } from "../domain/open.ts";
import type { OpenStore } from "../stores/open-store.ts";

export type EmitOpens = (opens: readonly Open[]) => Promise<void>;

/** What one question about users may name. */
const atATime = 1_000;

/** Whose the devices were when they were sent to, as the ledger has it; one question for each project. */
const withUsers = async (bus: Bus, projectId: ProjectId, opens: readonly Open[]) => {
  const deliveries = opens.map(({ notificationId, deviceId }) => ({ notificationId, deviceId }));
  const { users } = await sendRequest(bus, UsersOfDeliveries, { projectId, deliveries });
  return opens.map((open, at) => openedEvent(open, users[at]));
};

/**
 * Publishes `notification.opened` for opens, then marks them. A crash in between publishes again under the same event id,
 * which the stream or the consumer drops. While dispatch cannot be asked for users it throws `service-unavailable`; the opens are stored.
 */
export const emitOpens =
  (bus: Bus, store: OpenStore): EmitOpens =>
  async (opens) => {
    for (const [projectId, own] of Map.groupBy(opens, (open) => open.projectId))
      for (let from = 0; from < own.length; from += atATime) {
        const some = own.slice(from, from + atATime);
        await publishEvents(bus, await withUsers(bus, projectId, some));
        await store.markEmitted(some);
      }
  };
