import { randomUUID } from "node:crypto";
import { defineHandler } from "@herald/bus";
import { DeliveryFailedV1 } from "@herald/contracts";
import type { DeviceStore } from "../stores/device-store.ts";
import type { Announce } from "../stores/publish-queue.ts";

type Parts = { readonly devices: DeviceStore; readonly announce: Announce; readonly now: () => Date };

/** A provider says the token is dead, so stop sending to that device. */
export const retireDevice = ({ devices, announce, now }: Parts) =>
  defineHandler({
    durable: "registry-retire-device", // renaming a durable replays its stream
    message: DeliveryFailedV1,
    async handle({ data: { project_id: projectId, unregistered } }) {
      for (const { device_id: deviceId, token_hash: tokenHash, at } of unregistered) {
        const occasion = { projectId, at: now(), newId: randomUUID };
        if (await devices.retire(occasion, deviceId, tokenHash, new Date(at))) announce.devices(projectId, [deviceId]);
      }
    },
  });
