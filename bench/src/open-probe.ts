import { setTimeout as delay } from "node:timers/promises";
import { newDeviceId, newNotificationId } from "@herald/contracts";
import { parseOpenKeys } from "@herald/kit";
import { createOpenTokens } from "@herald/payload";
import type { System } from "./herald.ts";
import { until } from "./until.ts";

/** Reports opens of different devices at a steady pace as long as `more` returns true. Resolves to the time of each until its event, in ms. */
export const probeOpens = async (
  { herald, project, gateway, openKeys }: System,
  everyMs: number,
  more: () => boolean,
): Promise<number[]> => {
  const parsed = parseOpenKeys(openKeys);
  if ("problem" in parsed) throw new Error(parsed.problem);
  const tokens = createOpenTokens(parsed.keys);
  const notificationId = newNotificationId(new Date());
  const arrivedAt = new Map<string, number>();
  const following = new AbortController();
  const events = herald.events.follow({ types: ["io.herald.notification.opened.v1"], signal: following.signal });
  const reading = (async () => {
    for await (const { data } of events)
      if (data.notification_id === notificationId) arrivedAt.set(data.device_id, performance.now());
  })().catch((error: unknown) => {
    if (!following.signal.aborted) throw error;
  });
  const openedAt = new Map<string, number>();
  const opens: Promise<void>[] = [];
  while (more()) {
    await delay(everyMs);
    const now = new Date();
    const deviceId = newDeviceId(now);
    const token = tokens.sign({ projectId: project.id, notificationId, deviceId, platform: "ios" }, now);
    openedAt.set(deviceId, performance.now());
    opens.push(
      fetch(`${gateway}/api/v1/notifications/${notificationId}/open`, {
        method: "PUT",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ project_id: project.id, token }),
      }).then(({ status }) => {
        if (status !== 204) throw new Error(`an open was answered ${status}`);
      }),
    );
  }
  await Promise.all(opens);
  const all = until("the event of each open", async () => (arrivedAt.size >= openedAt.size ? true : undefined));
  await Promise.race([all, reading]);
  following.abort();
  await reading;
  return [...openedAt].map(([device, at]) => (arrivedAt.get(device) ?? 0) - at);
};
