import { randomUUID } from "node:crypto";
import { type Bus, handleRequest, type RequestListener } from "@herald/bus";
import { CheckRecipients, EraseUser, GetUser, type OutboxEvent, type ProjectId, userKey } from "@herald/contracts";
import { HeraldError } from "@herald/kit";
import type { ErasureStore } from "@herald/mongo";
import { userErased } from "../domain/registry-events.ts";
import type { DeviceStore } from "../stores/device-store.ts";
import type { ProjectStore } from "../stores/project-store.ts";
import type { Announce } from "../stores/publish-queue.ts";
import { deviceView } from "./views.ts";

type Parts = {
  readonly devices: DeviceStore;
  readonly projects: ProjectStore;
  readonly erasures: ErasureStore;
  readonly announce: Announce;
  /** Resolves when the event is on disk. */
  readonly publish: (event: OutboxEvent) => Promise<void>;
  readonly now: () => Date;
};

const maxShown = 100;
const atATime = 500;

/** The user goes here at once, and elsewhere by the event. Whoever gets no answer asks again: every step is repeatable. */
const erase = async (parts: Parts, projectId: ProjectId, userId: string): Promise<Date> => {
  const { devices, erasures, announce, publish, now } = parts;
  const at = now();
  await erasures.put({ projectId, key: userKey(projectId, userId), at });
  const occasion = { projectId, at, newId: randomUUID };
  for (;;) {
    const some = await devices.ofUser(projectId, userId, atATime);
    if (some.length === 0) break;
    for (const { _id } of some) await devices.remove(occasion, _id, userId);
    announce.devices(
      projectId,
      some.map(({ _id }) => _id),
    );
  }
  await publish(userErased(occasion, userId));
  return at;
};

/** Users, who are what devices say of them: there is no record of a user without a device. */
export const answerUsers = (bus: Bus, parts: Parts): RequestListener[] => {
  const { devices, projects } = parts;
  return [
    handleRequest(bus, GetUser, async ({ projectId, userId }) => {
      const [all, count] = await Promise.all([
        devices.ofUser(projectId, userId, maxShown),
        devices.countOfUser(projectId, userId),
      ]);
      if (all.length === 0) throw new HeraldError("user-not-found", "user: the project has no device of this user");
      const seen = Math.max(
        ...all.map(({ updatedAt, identifiedAt = updatedAt, lastSeenAt = updatedAt }) =>
          Math.max(+updatedAt, +identifiedAt, +lastSeenAt),
        ),
      );
      return {
        user_id: userId,
        devices: all.map(deviceView),
        device_count: count,
        last_seen_at: new Date(seen).toISOString(),
      };
    }),

    handleRequest(bus, EraseUser, async ({ projectId, userId }) => {
      if (!(await projects.exists(projectId)))
        throw new HeraldError("project-not-found", "project: there is none of this id");
      return { erasedAt: (await erase(parts, projectId, userId)).toISOString() };
    }),

    handleRequest(bus, CheckRecipients, async ({ projectId, devices: asked }) => {
      const found = await devices.findRecipients(
        projectId,
        asked.map(({ id }) => id),
      );
      const known = new Map(found.map((device) => [device._id, device]));
      const moved = asked.filter(({ id, userId }) => {
        const device = known.get(id);
        return device?.status !== "active" || (userId !== undefined && device.userId !== userId);
      });
      return { moved: moved.map(({ id }) => id) };
    }),
  ];
};
