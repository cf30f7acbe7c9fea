import { defineHandler } from "@herald/bus";
import { DeliveryFailedV1 } from "@herald/contracts";
import type { Deps } from "../deps.ts";
import { eventContext } from "../domain/registry-events.ts";

/** A provider reported the token as unregistered, so stop sending to that device. */
export const retireDevice = ({ devices, publishQueue, now }: Deps) =>
  defineHandler({
    durable: "registry-retire-device", // renaming a durable replays its stream
    message: DeliveryFailedV1,
    async handle({ data: { project_id: projectId, unregistered } }) {
      for (const { device_id: deviceId, token_hash: tokenHash, at } of unregistered) {
        if (await devices.retire(eventContext(projectId, now()), deviceId, tokenHash, new Date(at)))
          publishQueue.devices(projectId, [deviceId]);
      }
    },
  });
