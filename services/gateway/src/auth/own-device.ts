import type { DeviceId } from "@herald/contracts";
import { HeraldError } from "@herald/kit";
import type { CallerOf } from "./caller.ts";

/**
 * The device that a request is about. Throws forbidden where a device credential names another one, whether that exists
 * or not; whether a project has the device is for registry to say.
 */
export const ownDevice = (caller: CallerOf<"project" | "device">, id: DeviceId): DeviceId => {
  if (caller.kind === "device" && caller.deviceId !== id) {
    throw new HeraldError("forbidden", "authorization: a device credential acts for its own device alone");
  }
  return id;
};
