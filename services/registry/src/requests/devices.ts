import { randomUUID, timingSafeEqual } from "node:crypto";
import { type Bus, handleRequest, type RequestListener } from "@herald/bus";
import {
  AuthenticateDevice,
  ChangeDeviceRequest,
  ChangeMetadataByToken,
  DeleteDevice,
  type DeviceSummary,
  GetDevice,
  IdentifyDevice,
  ListDevices,
  RegisterDeviceRequest,
} from "@herald/contracts";
import { HeraldError } from "@herald/kit";
import { type ClaimParts, claimOf, unlessErased } from "../identity/claims.ts";
import type { DeviceDocument } from "../stores/device-document.ts";
import { changeDevice, noDevice } from "./change-device.ts";
import { type Registered, type RegistrationParts, registerDevice } from "./register-device.ts";
import { deviceView } from "./views.ts";

const summary = ({ _id, status }: DeviceDocument): DeviceSummary => ({ id: _id, status });

/** Both are SHA-256 in hex; a comparison that ends at the first difference would tell how much of it was right. */
const sameHash = (one: string, other: string): boolean =>
  one.length === other.length && timingSafeEqual(Buffer.from(one), Buffer.from(other));

/** Of metadata and of identifiers, from clients that prove nothing: enough for what apps say of themselves. */
const unprovenBytes = 10_240;

export const answerDevices = (bus: Bus, parts: RegistrationParts & ClaimParts): RequestListener[] => {
  const { devices, announce, now } = parts;
  return [
    handleRequest(bus, RegisterDeviceRequest, async ({ userId, ...wanted }) => {
      const user = userId === undefined ? undefined : ({ by: "project", userId } as const);
      const { device, credential, created } = await registerDevice(parts, { ...wanted, user }, true);
      return { device: deviceView(device), credential: credential ?? "", created };
    }),

    handleRequest(bus, IdentifyDevice, async ({ userToken, ...wanted }) => {
      const { projectId } = wanted;
      const user = await claimOf(parts, projectId, userToken);
      let registered: Registered | undefined;
      const device = await unlessErased(parts, projectId, user, async () => {
        registered = await registerDevice(parts, { ...wanted, topics: [], user, maxBytes: unprovenBytes }, false);
        return registered.device;
      });
      const { credential, created = false } = registered ?? {};
      return { device: summary(device), ...(credential && { credential }), created };
    }),

    handleRequest(bus, ListDevices, async ({ projectId, status, page }) => {
      const { data, ...rest } = await devices.list(projectId, status, page);
      return { data: data.map(deviceView), ...rest } as { data: ReturnType<typeof deviceView>[]; next: string | null };
    }),

    handleRequest(bus, GetDevice, async ({ projectId, deviceId }) => {
      const device = await devices.find(projectId, deviceId);
      if (!device) throw noDevice();
      return deviceView(device);
    }),

    handleRequest(bus, ChangeDeviceRequest, async ({ projectId, deviceId, change, ofUser, ...subscribedWith }) => {
      const { user_id: userId, user_token: userToken, ...rest } = change;
      const claim = await claimOf(parts, projectId, userToken);
      const user = userId === undefined ? claim : ({ by: "project", userId } as const);
      const whole = { ...rest, ...subscribedWith, user };
      const write = () => changeDevice(parts, projectId, deviceId, whole, ofUser);
      return deviceView(await unlessErased(parts, projectId, claim, write));
    }),

    handleRequest(bus, ChangeMetadataByToken, async ({ projectId, token, platform, metadata, userToken }) => {
      const user = await claimOf(parts, projectId, userToken);
      const [holder, other] = await devices.findHolders(projectId, token, platform && [platform]);
      if (!holder)
        throw new HeraldError("device-not-found", "identifier: no device of the project has this push token");
      if (other)
        throw new HeraldError(
          "ambiguous-device",
          "platform: is required, for this token is registered on more than one",
        );
      const change = { metadata, user, maxBytes: unprovenBytes };
      const write = () => changeDevice(parts, projectId, holder._id, change);
      return summary(await unlessErased(parts, projectId, user, write));
    }),

    handleRequest(bus, DeleteDevice, async ({ projectId, deviceId }) => {
      if (!(await devices.remove({ projectId, at: now(), newId: randomUUID }, deviceId))) throw noDevice();
      announce.devices(projectId, [deviceId]);
      return {};
    }),

    handleRequest(bus, AuthenticateDevice, async ({ projectId, deviceId, credentialHash }) => {
      const device = await devices.find(projectId, deviceId);
      return { valid: device !== undefined && sameHash(device.credentialHash, credentialHash) };
    }),
  ];
};
