import { z } from "zod";
import { DeviceId } from "../../ids.ts";
import { namedBody, withProblems } from "../../named.ts";
import { VapidKeyId } from "../../vapid.ts";
import { RegisterDevice } from "./device-bodies.ts";
import { tokenProblems, withCanonicalToken } from "./device-fields.ts";
import { DeviceStatus } from "./devices.ts";
import { FieldProblem } from "./problem.ts";

/** The limits of `PUT /devices`. `deviceBytes`: one device as JSON. */
export const putDevicesLimits = {
  devices: 1_000,
  bodyBytes: 4 * 1_048_576,
  values: 60_000,
  deviceBytes: 65_536,
} as const;

const ofNew = "Of a new device. A known one keeps its own, which is newer";

/** A device as the project's backend knows it: an entry of `PUT /devices`, or a converted line of an import. */
export const PutDevice = z
  .strictObject({
    ...RegisterDevice.shape.device.shape,
    vapid_key_id: VapidKeyId.optional().meta({
      description: "Web Push: the id of the key that the subscription was made with, instead of `keys.vapid_key`",
    }),
    status: DeviceStatus.optional().meta({ description: ofNew }),
    last_seen_at: z.iso.datetime({ offset: true }).optional().meta({ description: ofNew }),
  })
  .overwrite(withCanonicalToken)
  .superRefine(withProblems((device) => tokenProblems(device, "token")))
  .meta({ id: "PutDevice" });
export type PutDevice = z.infer<typeof PutDevice>;

/** Body of `PUT /devices`. Each entry is a {@link PutDevice}, validated separately, so the schema leaves it open. */
export const PutDevices = namedBody(
  "PutDevices",
  {
    devices: z
      .array(z.unknown().meta({ override: { $ref: "#/components/schemas/PutDevice" } }))
      .min(1, "at least one device is required")
      .max(putDevicesLimits.devices, `at most ${putDevicesLimits.devices} devices are accepted`),
  },
  {
    examples: [
      {
        devices: [
          {
            token: "740f4707bebcf74f9b7c25d48e3358945f6aa01da5ddb387462c7eaf61bb78ad",
            platform: "ios",
            user_id: "u_8412",
            topics: ["news"],
            metadata: { plan: "pro" },
          },
        ],
      },
    ],
  },
);

/** Between services: a problem of a refused entry of a list or line of a file. `field` is a dotted path into it. */
export const EntryProblem = z.object({ field: z.string(), detail: z.string(), code: z.string() });
export type EntryProblem = z.infer<typeof EntryProblem>;

/** The result for one device of `PUT /devices`. */
export const PutDeviceResult = z
  .union([
    z.object({ result: z.enum(["created", "updated", "unchanged"]), id: DeviceId }),
    z.object({ result: z.literal("refused"), problems: z.array(FieldProblem).min(1) }),
  ])
  .meta({ id: "PutDeviceResult" });
export type PutDeviceResult = z.infer<typeof PutDeviceResult>;
