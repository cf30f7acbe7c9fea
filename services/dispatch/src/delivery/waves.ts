import { type Bus, sendRequest } from "@herald/bus";
import {
  audienceOfContent,
  type ExpandedV1,
  ListZones,
  type NotificationId,
  type ProjectId,
  type SendV1,
} from "@herald/contracts";
import { planWaves, type ZoneWave } from "@herald/rules";
import type { Deps } from "../deps.ts";
import { isTooLate, replan, type Waves, withExpanded } from "../domain/waves.ts";
import { toLastWave, toWaveAccepted, toWaveExpanded } from "../stores/wave-steps.ts";
import type { DueMessages, Finisher } from "./follow-up.ts";

/** The zones of the devices that a notification may have. Throws `service-unavailable` while registry is unavailable. */
const zonesOf = async (bus: Bus, { projectId, content }: Pick<SendV1, "projectId" | "content">): Promise<string[]> =>
  (await sendRequest(bus, ListZones, { projectId, ...audienceOfContent(content) })).zones;

type WaveDeps = Pick<Deps, "bus" | "notifications" | "now"> & {
  readonly finisher: Finisher;
  readonly dueMessages: DueMessages;
};

/** Notifications that are sent in waves: several expansions in turn, each at its time. */
export const createWaves = ({ bus, notifications, finisher, dueMessages, now }: WaveDeps) => {
  const plan = async (local: Waves["local"], of: Pick<SendV1, "projectId" | "content">): Promise<ZoneWave[]> =>
    planWaves(local, await zonesOf(bus, of));

  return {
    /** The waves of a new notification; undefined: it is sent at once. */
    planOf: async (send: Pick<SendV1, "projectId" | "content" | "local">): Promise<Waves | undefined> =>
      send.local && { n: 0, list: await plan(send.local, send), local: send.local },

    /** Begins the next wave if its time has come. False when another process began it, or its time was changed. Repeatable. */
    begin: async (projectId: ProjectId, id: NotificationId): Promise<boolean> => {
      const document = await notifications.getShown(projectId, id);
      const { waves, step } = document ?? {};
      const wave = waves?.list[waves.n];
      if (!document || !waves || !wave || step !== "scheduled" || wave.at > now()) return false;
      if (waves.n > 0 && isTooLate(waves, now())) {
        await notifications.advanceWave(projectId, id, toLastWave({ waves }, now(), false));
        await finisher.check(projectId, id);
        return false;
      }
      const list = replan(waves, await plan(waves.local, document));
      return notifications.advanceWave(projectId, id, toWaveAccepted({ ...document, waves }, list));
    },

    /** Registry has partitioned every batch of a wave. Schedules the next one, or waits for the end. Repeatable. */
    expanded: async ({ projectId, notificationId, wave, ...done }: ExpandedV1, at: Date): Promise<void> => {
      for (;;) {
        const known = await notifications.getState(projectId, notificationId);
        if (!known?.waves || known.end) return;
        const { waves, step, nextAt } = known;
        if (waves.n !== wave?.n) {
          // A repeat, perhaps after a crash behind the update below.
          if (step === "scheduled") await dueMessages.schedule(known, nextAt);
          return;
        }
        if (step !== "accepted" && step !== "expanding" && !known.expanded?.lost) return;
        const { next, transition } = toWaveExpanded(
          { ...known, waves },
          withExpanded({ ...known, waves }, waves.n, done, at),
          now(),
        );
        if (!(await notifications.advanceWave(projectId, notificationId, transition))) continue;
        if (next) await dueMessages.schedule(known, next.at);
        return;
      }
    },
  };
};
