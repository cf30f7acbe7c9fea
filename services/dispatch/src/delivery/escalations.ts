import { publishEvents, sendRequest } from "@herald/bus";
import { type DeviceId, type OutboxEvent, openRequests } from "@herald/contracts";
import { isUnavailable } from "@herald/kit";
import type { Deps } from "../deps.ts";
import type { DueEscalation } from "../stores/escalation-store.ts";
import { notificationUnopened } from "../stores/events.ts";
import { escalationGraceMs } from "../stores/notification-document.ts";

/**
 * Publishes who has not opened a notification, at the time that its sender asked for. A sweep alone, without messages: those that wait while
 * analytics is unavailable are tried again, and take no place of pushes that wait.
 */
export const createEscalateDue = (deps: Pick<Deps, "bus" | "escalations" | "log" | "now">) => {
  const { bus, escalations, log, now } = deps;

  /** The events to publish, stored so that they are the same after a crash. Undefined while they are not known. */
  const decide = async (due: DueEscalation): Promise<readonly OutboxEvent[] | undefined> => {
    const { _id: notificationId, projectId, escalation } = due;
    const until = new Date(escalation.at.getTime() + escalationGraceMs).toISOString();
    // Before the opens are read.
    const { stored } = await sendRequest(bus, openRequests.stored, { projectId, until });
    if (!stored) return undefined;
    const openedOf = async (deviceIds: DeviceId[]) => {
      const { openedAt } = await sendRequest(bus, openRequests.ofDevices, { projectId, notificationId, deviceIds });
      return new Set(Object.keys(openedAt));
    };
    const unopened = await escalations.unopened(due, openedOf);
    const events = unopened?.map((one) => notificationUnopened(due, one, now()));
    return events && (events.length === 0 || (await escalations.decide(due, events))) ? events : undefined;
  };

  const escalate = async (due: DueEscalation): Promise<void> => {
    const events = due.escalation.events ?? (await decide(due));
    if (!events) return;
    await publishEvents(bus, events);
    await escalations.end(due);
  };

  return async (signal: AbortSignal): Promise<void> => {
    for (;;) {
      const { taken, more } = await escalations.takeDue(now());
      const ends = await Promise.allSettled(taken.map(escalate));
      for (const [at, end] of ends.entries()) {
        if (end.status === "fulfilled") continue;
        // The others would fail, too.
        if (isUnavailable(end.reason)) throw end.reason;
        const { _id: notificationId, projectId } = taken[at] ?? {};
        log.error({ notificationId, projectId, err: end.reason }, "cannot find who has not opened a notification");
      }
      if (!more || signal.aborted) return;
    }
  };
};
