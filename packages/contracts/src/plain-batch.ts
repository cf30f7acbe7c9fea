import type { z } from "zod";
import { isDeviceId } from "./ids.ts";
import { isObject } from "./is-object.ts";
import { ApnsEnvironment, FcmTokenKind } from "./platforms.ts";

const environments: ReadonlySet<unknown> = new Set(ApnsEnvironment.options);
const tokenKinds: ReadonlySet<unknown> = new Set(FcmTokenKind.options);

/** What the schema would strip is there no more. */
const isTakenWhole = (schema: z.ZodType, value: Record<string, unknown>): boolean => {
  const { success, data } = schema.safeParse(value);
  return success && Object.keys(data as object).length === Object.keys(value).length;
};

/** Most devices are three fields, and some a word more. */
const isUsual = (device: Record<string, unknown>): boolean => {
  if (!isDeviceId(device.id) || typeof device.token !== "string" || !Number.isSafeInteger(device.tokenAt)) return false;
  for (const name in device) {
    const value = device[name];
    switch (name) {
      case "id":
      case "token":
      case "tokenAt":
        continue;
      case "environment":
        if (!environments.has(value)) return false;
        continue;
      case "tokenKind":
        if (!tokenKinds.has(value)) return false;
        continue;
      case "locale":
      case "userId":
        if (typeof value !== "string") return false;
        continue;
      default:
        return false;
    }
  }
  return true;
};

/** Whether an recipient's schema takes the device as it is. */
export const isPlainRecipient = (schema: z.ZodType, device: unknown): boolean =>
  isObject(device) && (isUsual(device) || isTakenWhole(schema, device));

/**
 * Tells whether the schema of a message about many `devices` takes it as it is, at a tenth of the cost and without a copy: that is
 * asked several times for every device of every send. The schema is the contract still: it judges all but the devices.
 */
export const plainBatch =
  <Schema extends z.ZodType>(schema: Schema, isPlainDevice: (device: unknown) => boolean) =>
  (data: unknown): data is z.output<Schema> =>
    isObject(data) &&
    Array.isArray(data.devices) &&
    isTakenWhole(schema, { ...data, devices: [] }) &&
    data.devices.every(isPlainDevice);
