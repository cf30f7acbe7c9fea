import type { DeviceId } from "@herald/contracts";
import { HeraldError } from "@herald/kit";
import type { CallerOf } from "./caller.ts";

/**
 * The device of a request. Throws forbidden when a device credential names another device, existing or not. Registry checks that the
 * project has the device.
 */
export const ownDevice = (caller: CallerOf<"project" | "device">, id: DeviceId): DeviceId => {
  if (caller.kind === "device" && caller.deviceId !== id) {
    throw new HeraldError("forbidden", "authorization: a device credential can only act for its own device");
  }
  return id;
};
