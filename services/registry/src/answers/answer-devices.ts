import { randomUUID, timingSafeEqual } from "node:crypto";
import { type Answering, answer, type Bus } from "@herald/bus";
import {
  AuthenticateDevice,
  ChangeDeviceQuestion,
  ChangeMetadataByToken,
  DeleteDevice,
  type DeviceSummary,
  GetDevice,
  IdentifyDevice,
  ListDevices,
  RegisterDeviceQuestion,
} from "@herald/contracts";
import { HeraldError } from "@herald/kit";
import type { DeviceDocument } from "../stores/device-document.ts";
import { changeDevice, noDevice } from "./change-device.ts";
import { type RegistrationParts, registerDevice } from "./register-device.ts";
import { deviceView } from "./views.ts";

const summary = ({ _id, status }: DeviceDocument): DeviceSummary => ({ id: _id, status });

/** Both are SHA-256 in hex; a comparison that ends at the first difference would tell how much of it was right. */
const sameHash = (one: string, other: string): boolean =>
  one.length === other.length && timingSafeEqual(Buffer.from(one), Buffer.from(other));

export const answerDevices = (bus: Bus, parts: RegistrationParts): Answering[] => {
  const { devices, announce, now } = parts;
  return [
    answer(bus, RegisterDeviceQuestion, async (wanted) => {
      const { device, credential, created } = await registerDevice(parts, wanted, true);
      return { device: deviceView(device), credential: credential ?? "", created };
    }),

    answer(bus, IdentifyDevice, async (wanted) => {
      const { device, credential, created } = await registerDevice(parts, { ...wanted, topics: [] }, false);
      return { device: summary(device), ...(credential && { credential }), created };
    }),

    answer(bus, ListDevices, async ({ projectId, status, page }) => {
      const { data, ...rest } = await devices.list(projectId, status, page);
      return { data: data.map(deviceView), ...rest } as { data: ReturnType<typeof deviceView>[]; next: string | null };
    }),

    answer(bus, GetDevice, async ({ projectId, deviceId }) => {
      const device = await devices.find(projectId, deviceId);
      if (!device) throw noDevice();
      return deviceView(device);
    }),

    answer(bus, ChangeDeviceQuestion, async ({ projectId, deviceId, change, ...subscribedWith }) =>
      deviceView(await changeDevice(parts, projectId, deviceId, { ...change, ...subscribedWith })),
    ),

    answer(bus, ChangeMetadataByToken, async ({ projectId, token, platform, metadata }) => {
      const [holder, other] = await devices.findHolders(projectId, token, platform && [platform]);
      if (!holder)
        throw new HeraldError("device-not-found", "identifier: no device of the project has this push token");
      if (other)
        throw new HeraldError(
          "ambiguous-device",
          "platform: is required, for this token is registered on more than one",
        );
      return summary(await changeDevice(parts, projectId, holder._id, { metadata }));
    }),

    answer(bus, DeleteDevice, async ({ projectId, deviceId }) => {
      if (!(await devices.remove({ projectId, at: now(), newId: randomUUID }, deviceId))) throw noDevice();
      announce.devices(projectId, [deviceId]);
      return {};
    }),

    answer(bus, AuthenticateDevice, async ({ projectId, deviceId, credentialHash }) => {
      const device = await devices.find(projectId, deviceId);
      return { valid: device !== undefined && sameHash(device.credentialHash, credentialHash) };
    }),
  ];
};
