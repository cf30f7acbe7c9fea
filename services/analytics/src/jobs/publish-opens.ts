import { type Bus, publishEvents, sendRequest } from "@herald/bus";
import { type ProjectId, UsersOfDeliveries } from "@herald/contracts";
import { type Logger, type Repeating, repeat } from "@herald/kit";
import { type Open, openedEvent } from "../domain/open.ts";
import type { OpenStore } from "../stores/open-store.ts";

export type PublishOpens = (opens: readonly Open[]) => Promise<void>;

/** The limit of one UsersOfDeliveries request. */
const publishPage = 1_000;
const everyMs = 5_000;
/** No publish that is still in progress is older. */
const graceMs = 10_000;
const sweepPage = 1_000;

/** Adds what dispatch knows: the users of the devices at the time of the send, and the tags of the notifications. */
const openedEvents = async (bus: Bus, projectId: ProjectId, opens: readonly Open[]) => {
  const deliveries = opens.map(({ notificationId, deviceId }) => ({ notificationId, deviceId }));
  const { users, tags = {} } = await sendRequest(bus, UsersOfDeliveries, { projectId, deliveries });
  return opens.map((open, at) => openedEvent(open, users[at], tags[open.notificationId]));
};

/**
 * Publishes `notification.opened`, then marks the opens. A crash in between publishes them again under the same event ids, which the
 * stream or the consumer drops.
 * @throws HeraldError `service-unavailable` while dispatch does not answer; the opens stay stored, and the sweep publishes them.
 */
export const createPublishOpens =
  (bus: Bus, store: OpenStore): PublishOpens =>
  async (opens) => {
    for (const [projectId, own] of Map.groupBy(opens, (open) => open.projectId))
      for (let from = 0; from < own.length; from += publishPage) {
        const page = own.slice(from, from + publishPage);
        await publishEvents(bus, await openedEvents(bus, projectId, page));
        await store.markPublished(page);
      }
  };

/** Publishes opens that a crash left in the database without their event. */
export const sweepOpens = (store: OpenStore, publishOpens: PublishOpens, log: Logger, now: () => Date): Repeating =>
  repeat("publish opens that a crash left", everyMs, log, async (signal) => {
    while (!signal.aborted) {
      const left = await store.findUnpublished(new Date(now().getTime() - graceMs), sweepPage);
      if (left.length === 0) return;
      await publishOpens(left);
      log.info({ opens: left.length }, "published opens that a crash left");
    }
  });
