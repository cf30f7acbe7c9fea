import { handleRequest, type RequestListener, sendRequest } from "@herald/bus";
import { audienceRequests, erasureRequests, type ProjectId, userKey, userRequests } from "@herald/contracts";
import { notFound } from "@herald/kit";
import type { Deps } from "../deps.ts";
import { isOff } from "../domain/preferences.ts";
import { eventContext, registryEvent } from "../domain/registry-events.ts";
import { lastSeenOf } from "../stores/list-devices.ts";
import { deviceView } from "./change-device.ts";

const maxListed = 100;
const atATime = 500;

type EraseDeps = Pick<Deps, "bus" | "devices" | "erasures" | "now" | "publish" | "publishSoon" | "userPreferences">;

/** Removes the user from registry at once, and from the other services by the event. Repeatable at any point. */
const erase = async (deps: EraseDeps, projectId: ProjectId, userId: string): Promise<Date> => {
  const { bus, devices, userPreferences, erasures, publishSoon, publish, now } = deps;
  const at = now();
  const key = userKey(projectId, userId);
  await erasures.put({ projectId, key, at });
  const context = eventContext(projectId, at);
  for (;;) {
    const some = await devices.tokensOfUser(projectId, userId, atATime);
    if (some.length === 0) break;
    const known = some.map(({ _id: id, token }) => ({ id, token }));
    // Before they are removed: a crash or an error leaves devices, which the next erasure finds.
    await sendRequest(bus, erasureRequests.eraseDevices, { projectId, key, at: at.toISOString(), devices: known });
    for (const { _id } of some) await devices.remove(context, _id, userId);
    publishSoon.devices(
      projectId,
      some.map(({ _id }) => _id),
    );
  }
  await userPreferences.remove(projectId, userId);
  await publish([registryEvent(context, "UserErasedV1", projectId, { user_id: userId })]);
  return at;
};

/** A user exists only as the `userId` of devices. */
export const handleUserRequests = (deps: EraseDeps & Pick<Deps, "keyedMutex" | "projects">): RequestListener[] => {
  const { bus, devices, projects } = deps;
  return [
    handleRequest(bus, userRequests.get, async ({ projectId, userId }) => {
      const [all, count] = await Promise.all([
        devices.ofUser(projectId, userId, maxListed),
        devices.countOfUser(projectId, userId),
      ]);
      if (all.length === 0) throw notFound("user-not-found", "user", "the project has no device of this user");
      return {
        user_id: userId,
        devices: all.map(deviceView),
        device_count: count,
        last_seen_at: lastSeenOf(all).toISOString(),
      };
    }),

    handleRequest(bus, userRequests.list, async ({ projectId, page, prefix }) => {
      const { data, next } = await devices.listUsers(projectId, page, prefix);
      const users = data.map(({ userId, devices: count, lastSeenAt }) => ({
        user_id: userId,
        device_count: count,
        last_seen_at: lastSeenAt.toISOString(),
      }));
      return { data: users, next };
    }),

    handleRequest(bus, userRequests.erase, async ({ projectId, userId }) => {
      await projects.requireExisting(projectId);
      // A user with very many devices takes longer than a caller waits: its repeats must not remove the same devices side by side.
      const at = await deps.keyedMutex(`erase/${projectId}/${userId}`, () => erase(deps, projectId, userId));
      return { erasedAt: at.toISOString() };
    }),

    handleRequest(bus, audienceRequests.check, async ({ projectId, devices: asked, kind }) => {
      const found = await devices.findRecipients(
        projectId,
        asked.map(({ id }) => id),
      );
      const known = new Map(found.map((device) => [device._id, device]));
      const moved = asked.filter(({ id, userId }) => {
        const device = known.get(id);
        return device?.status !== "active" || (userId !== undefined && device.userId !== userId);
      });
      const muted = kind ? found.filter((device) => isOff(device, kind)).map(({ _id }) => _id) : [];
      return { moved: moved.map(({ id }) => id), ...(kind && { muted }) };
    }),
  ];
};
