import { publishEvents, sendRequest } from "@herald/bus";
import { type DeviceId, openRequests } from "@herald/contracts";
import type { Deps } from "../deps.ts";
import type { DueEscalation } from "../stores/escalation-store.ts";
import { notificationUnopened } from "../stores/events.ts";

/**
 * Publishes which users have not opened a notification, at the time that its sender asked for. A sweep alone, without messages: those that
 * wait while analytics is unavailable are tried again each minute, and take no place of pushes that wait.
 */
export const createEscalateDue = (deps: Pick<Deps, "bus" | "escalations" | "now">) => {
  const { bus, escalations, now } = deps;

  const escalate = async (due: DueEscalation): Promise<void> => {
    const { _id: notificationId, projectId, escalation } = due;
    // Before the opens are read.
    const { stored } = await sendRequest(bus, openRequests.stored, { projectId, until: escalation.at.toISOString() });
    if (!stored) return;
    const openedOf = async (deviceIds: DeviceId[]) => {
      const { openedAt } = await sendRequest(bus, openRequests.ofDevices, { projectId, notificationId, deviceIds });
      return new Set(Object.keys(openedAt));
    };
    const unopened = await escalations.unopened(due, openedOf);
    if (!unopened) return;
    const events = unopened.map((one) => notificationUnopened(due, one, now()));
    // Until then the notification is their outbox: after a crash they are published again, under the same ids.
    await publishEvents(bus, events);
    await escalations.end(due);
  };

  return async (signal: AbortSignal): Promise<void> => {
    for (let due = await escalations.takeDue(now()); due.length > 0; due = await escalations.takeDue(now())) {
      const ends = await Promise.allSettled(due.map(escalate));
      // While analytics is unavailable, the others would fail, too.
      for (const end of ends) if (end.status === "rejected") throw end.reason;
      if (signal.aborted) return;
    }
  };
};
