import { type Bus, sendRequest } from "@herald/bus";
import {
  audienceOfContent,
  audienceRequests,
  type ExpandedV1,
  type NotificationId,
  type ProjectId,
  type SendV1,
} from "@herald/contracts";
import { planWaves, type ZoneWave } from "@herald/rules";
import type { Deps } from "../deps.ts";
import { type Expansions, isTooLate, replan, withExpanded } from "../domain/expansions.ts";
import { pauseOf } from "../project-rules.ts";
import { expansionOf, type NotificationState } from "../stores/notification-document.ts";
import { toAccepted, toAcceptedAgain, toExpanded, toLastExpansion, toRecheck } from "../stores/notification-steps.ts";
import type { DueMessages, Finisher } from "./follow-up.ts";

/** The zones of the devices that a notification may have. Throws `service-unavailable` while registry is unavailable. */
const zonesOf = async (bus: Bus, { projectId, content }: Pick<SendV1, "projectId" | "content">): Promise<string[]> =>
  (await sendRequest(bus, audienceRequests.zones, { projectId, ...audienceOfContent(content) })).zones;

/** How often a paused notification whose time has come is looked at. A resume makes it due. */
const pausedCheckMs = 3_600_000;

type ExpansionDeps = Pick<Deps, "bus" | "notifications" | "now" | "rules"> & {
  readonly finisher: Finisher;
  readonly dueMessages: DueMessages;
};

/** The expansions of large sends: usually one; several in turn, each at its time, if the time is that of each device. */
export const createExpansions = ({ bus, notifications, finisher, dueMessages, rules, now }: ExpansionDeps) => {
  const waves = async (
    local: NonNullable<Expansions["local"]>,
    of: Pick<SendV1, "projectId" | "content">,
  ): Promise<ZoneWave[]> => planWaves(local, await zonesOf(bus, of));

  /** Not after a stop: its devices are only counted. */
  const isHeld = ({ projectId, paused, stop }: NotificationState) =>
    !stop && (paused !== undefined || pauseOf(rules, projectId) !== undefined);

  return {
    planOf: async (
      send: Pick<SendV1, "projectId" | "content" | "local" | "sendAt" | "acceptedAt">,
    ): Promise<Expansions> =>
      send.local ? { n: 0, list: await waves(send.local, send), local: send.local } : expansionOf(send),

    /** Begins the next expansion if its time has come. False when it still waits, or nothing is left to expand. Repeatable. */
    begin: async (projectId: ProjectId, id: NotificationId): Promise<boolean> => {
      if (rules.loading) await rules.loading;
      const document = await notifications.getShown(projectId, id);
      const { expansions, step } = document ?? {};
      if (!document || !expansions) return false;
      // After a crash behind the update below, the message is redelivered, and the expansion must still be commanded.
      if (step === "accepted" || step === "expanding") return true;
      const next = expansions.list[expansions.n];
      if (step !== "scheduled" || !next || next.at > now()) return false;
      // What expires meanwhile is expanded, so that its devices are counted.
      if (document.expiresAt > now() && isHeld(document)) {
        const again = Math.min(now().getTime() + pausedCheckMs, document.expiresAt.getTime());
        await notifications.advance(projectId, id, toRecheck({ ...document, expansions }, new Date(again)));
        // Resumed meanwhile: the resume may have found it before the update above.
        const known = await notifications.getState(projectId, id);
        if (known?.step === "scheduled" && !isHeld(known)) await dueMessages.publish(known, now());
        return false;
      }
      if (next.devices === undefined && isTooLate(expansions, now())) {
        await notifications.advance(projectId, id, toLastExpansion({ expansions }, now(), false));
        await finisher.check(projectId, id);
        return false;
      }
      const { local, list } = expansions;
      // One that takes place again keeps its zones, and those behind it.
      const planned = local && next.devices === undefined ? replan(expansions, await waves(local, document)) : list;
      return notifications.advance(projectId, id, toAccepted({ ...document, expansions }, planned));
    },

    /** Registry has partitioned every batch of an expansion. Schedules the next one, or waits for the end. Repeatable. */
    expanded: async (done: ExpandedV1, at: Date): Promise<void> => {
      const { projectId, notificationId } = done;
      for (;;) {
        const known = await notifications.getState(projectId, notificationId);
        if (!known?.expansions || known.end) return;
        const { expansions, step, nextAt } = known;
        if (expansions.n !== done.n) {
          // A repeat, perhaps after a crash behind the update below.
          if (step === "scheduled") await dueMessages.schedule(known, nextAt);
          return;
        }
        if (step !== "accepted" && step !== "expanding" && !known.expanded?.lost) return;
        const state = { ...known, expansions };
        const { next, transition } = toExpanded(state, withExpanded(state, done, at), now());
        if (!(await notifications.advance(projectId, notificationId, transition))) continue;
        if (next) await dueMessages.schedule(known, next.at);
        return;
      }
    },

    /** Expands a notification again whose messages are gone, with the same batch ids. False when it has changed since it was read. */
    again: async (known: NotificationState): Promise<boolean> => {
      const { projectId, _id, expansions } = known;
      if (!expansions) return false;
      return notifications.advance(projectId, _id, toAcceptedAgain({ ...known, expansions }, now()));
    },
  };
};

export type ExpansionSteps = ReturnType<typeof createExpansions>;
