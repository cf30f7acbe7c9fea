import { setTimeout as sleep } from "node:timers/promises";
import { handleRequest, type RequestListener } from "@herald/bus";
import { notificationRequests } from "@herald/contracts";
import { HeraldError } from "@herald/kit";
import type { DeliveryDeps } from "../delivery/create-delivery.ts";
import { type Outcomes, outcomesOf } from "../domain/rollout.ts";
import type { ShownNotification } from "../stores/notification-document.ts";
import {
  type FindNotification,
  getStored,
  type RecentSums,
  readChanged,
  stopPropagationMs,
  unstoredView,
  viewOf,
} from "./notifications.ts";

type PauseDeps = Pick<
  DeliveryDeps,
  "bus" | "cache" | "expansionSteps" | "notifications" | "now" | "outbox" | "recipients" | "resumeSends" | "sends"
> & {
  readonly find: FindNotification;
  readonly sumsOf: RecentSums;
};

/** Pauses and resumes notifications, in any step before their end. */
export const handleNotificationPauses = (deps: PauseDeps): RequestListener[] => {
  const { bus, cache, find, notifications, resumeSends, sends, sumsOf, now } = deps;

  const requireOpen = ({ end, stop, status }: ShownNotification): void => {
    if (end || stop)
      throw new HeraldError("notification-final", `the notification is ${status}: nothing is left to send`);
  };

  /** What does not stop the rollout again that stopped. */
  const outcomesBefore = async ({ projectId, _id, content }: ShownNotification): Promise<Outcomes | undefined> =>
    content.rollout?.stop_if && outcomesOf(content.rollout, await sumsOf(projectId, _id));

  return [
    handleRequest(bus, notificationRequests.pause, async ({ projectId, notificationId, by, reason }) => {
      for (;;) {
        const document = await getStored(deps, projectId, notificationId);
        requireOpen(document);
        // Its holder's end would remove the event of a pause with its own events.
        if (document.step === "sending") await sends.moveToDeliveries(projectId, notificationId);
        const pause = { at: now(), by, ...(reason !== undefined && { reason }) };
        // Otherwise it was stopped, or has ended, since it was read.
        if (document.paused || (await notifications.pause(document, pause))) break;
      }
      cache.setPaused(notificationId, true);
      await sleep(stopPropagationMs);
      return viewOf(await readChanged(deps, projectId, notificationId), sumsOf);
    }),

    handleRequest(bus, notificationRequests.resume, async ({ projectId, notificationId, by }) => {
      for (;;) {
        const found = await find(projectId, notificationId);
        // A pause would have stored it.
        if ("send" in found) return unstoredView(found.send, now());
        const { document } = found;
        requireOpen(document);
        if (!document.paused || (await notifications.resume(document, now(), by, await outcomesBefore(document))))
          break;
      }
      cache.setPaused(notificationId, false);
      const document = await readChanged(deps, projectId, notificationId);
      await resumeSends.ofNotification(document);
      return viewOf(document, sumsOf);
    }),
  ];
};
