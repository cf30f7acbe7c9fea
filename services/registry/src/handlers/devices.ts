import { defineBatchHandler, defineHandler } from "@herald/bus";
import { DeliveryFailedV1, NotificationOpenedV1 } from "@herald/contracts";
import type { Deps } from "../deps.ts";
import { eventContext } from "../domain/registry-events.ts";
import type { ChangeDeviceDeps } from "../requests/change-device.ts";
import { retireToken } from "../requests/further-tokens.ts";

/** The token is dead, or wrong for ever, so stop sending to that device. */
export const handleRetireDevice = (deps: ChangeDeviceDeps) => {
  const { devices, publishSoon, now } = deps;
  return defineHandler({
    durable: "registry-retire-device", // renaming a durable replays its stream
    message: DeliveryFailedV1,
    async handle({ data: { project_id: projectId, unregistered } }) {
      for (const { device_id: deviceId, token_hash: tokenHash, at, reason = "unregistered" as const } of unregistered) {
        const refusal = { deviceId, tokenHash, at: new Date(at), reason };
        if (await devices.retire(eventContext(projectId, now()), refusal)) publishSoon.devices(projectId, [deviceId]);
        else await retireToken(deps, projectId, refusal);
      }
    },
  });
};

/** An open shows that the app is still installed. One open per device and day is stored. */
export const recordDeviceOpens = ({ devices, now }: Pick<Deps, "devices" | "now">) =>
  defineBatchHandler({
    durable: "registry-record-opens", // renaming a durable replays its stream
    message: NotificationOpenedV1,
    // No caller waits, so a batch may grow.
    size: 500,
    waitMs: 250,
    concurrency: 1,
    async handle(deliveries) {
      const latest = now().getTime();
      await devices.opened(
        deliveries.map(({ data: { project_id: projectId, device_id: _id, at } }) => ({
          projectId,
          _id,
          at: new Date(Math.min(Date.parse(at), latest)),
        })),
      );
    },
  });
