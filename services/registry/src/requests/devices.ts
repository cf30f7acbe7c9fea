import { timingSafeEqual } from "node:crypto";
import { handleRequest, type RequestListener } from "@herald/bus";
import {
  AuthenticateDevice,
  ChangeDeviceRequest,
  ChangeMetadataByToken,
  DeleteDevice,
  type DeviceSummary,
  ExportDevices,
  GetDevice,
  IdentifyDevice,
  ListDevices,
  PutDevicesRequest,
  RegisterDeviceRequest,
  servingProvider,
} from "@herald/contracts";
import { HeraldError } from "@herald/kit";
import { encodeAfter } from "@herald/mongo";
import type { Deps } from "../deps.ts";
import { formatPosition } from "../domain/match-walk.ts";
import { eventContext } from "../domain/registry-events.ts";
import { rejectErasedUser, verifyClaim } from "../identity/claims.ts";
import { parseDevice, putDevices } from "../imports/put-devices.ts";
import type { DeviceDocument } from "../stores/device-document.ts";
import { changeDevice, deviceNotFound } from "./change-device.ts";
import { exportDevices } from "./export-devices.ts";
import { listPosition, matchDevices } from "./match-devices.ts";
import { type Registered, registerDevice } from "./register-device.ts";
import { deviceView } from "./views.ts";

const summary = ({ _id, status }: DeviceDocument): DeviceSummary => ({ id: _id, status });

/** In constant time. Both are SHA-256 in hex. */
const equalHashes = (one: string, other: string): boolean =>
  one.length === other.length && timingSafeEqual(Buffer.from(one), Buffer.from(other));

/** Of metadata and identifiers each, from clients without a credential. */
const maxUnprovenBytes = 10_240;

export const handleDeviceRequests = (deps: Deps): RequestListener[] => {
  const { bus, devices, publishQueue, now } = deps;
  return [
    handleRequest(bus, RegisterDeviceRequest, async ({ userId, ...wanted }) => {
      const user = userId === undefined ? undefined : ({ by: "project", userId } as const);
      const { device, credential, created } = await registerDevice(deps, { ...wanted, user }, "rotate");
      return { device: deviceView(device), credential: credential ?? "", created };
    }),

    handleRequest(bus, IdentifyDevice, async ({ userToken, ...wanted }) => {
      const { projectId } = wanted;
      const user = await verifyClaim(deps, projectId, userToken);
      let registered: Registered | undefined;
      const device = await rejectErasedUser(deps, projectId, user, async () => {
        registered = await registerDevice(deps, { ...wanted, topics: [], user, maxBytes: maxUnprovenBytes }, "first");
        return registered.device;
      });
      const { credential, created = false } = registered ?? {};
      return { device: summary(device), ...(credential && { credential }), created };
    }),

    handleRequest(bus, PutDevicesRequest, async ({ projectId, devices: entries }) => {
      const parsed = entries.map(parseDevice);
      return { results: await putDevices(deps, projectId, parsed) };
    }),

    handleRequest(bus, ListDevices, async ({ projectId, page, match, status, ...filter }, { signal }) => {
      if (match === undefined) {
        const found = await devices.list(projectId, { ...filter, status }, page);
        return { ...found, data: found.data.map(deviceView) };
      }
      const { createdAfter, createdBefore, perPage } = page;
      const wanted = { ...filter, projectId, match, createdAfter, createdBefore, perPage, start: listPosition(page) };
      const { data, next } = await matchDevices(deps, wanted, signal);
      return { data: data.map(deviceView), next: next && encodeAfter(formatPosition(next)) };
    }),

    handleRequest(bus, ExportDevices, (request, { signal }) => exportDevices(deps, request, signal)),

    handleRequest(bus, GetDevice, async ({ projectId, deviceId }) => {
      const device = await devices.find(projectId, deviceId);
      if (!device) throw deviceNotFound();
      return deviceView(device);
    }),

    handleRequest(
      bus,
      ChangeDeviceRequest,
      async ({ projectId, deviceId, change, ofUser, byApp, ...subscribedWith }) => {
        const { user_id: userId, user_token: userToken, installation_id: installationId, ...rest } = change;
        const claim = await verifyClaim(deps, projectId, userToken);
        const user = userId === undefined ? claim : ({ by: "project", userId } as const);
        const whole = { ...rest, ...subscribedWith, installationId, user };
        const write = () => changeDevice(deps, projectId, deviceId, whole, { ofUser, byApp });
        return deviceView(await rejectErasedUser(deps, projectId, claim, write));
      },
    ),

    handleRequest(bus, ChangeMetadataByToken, async ({ projectId, token, platform, provider, metadata, userToken }) => {
      const user = await verifyClaim(deps, projectId, userToken);
      const holders = await devices.findHolders(projectId, token, platform && [platform]);
      const [holder, other] = holders.filter((one) => provider === undefined || servingProvider(one) === provider);
      if (!holder)
        throw new HeraldError("device-not-found", "identifier: no device of the project has this push token");
      if (other)
        throw new HeraldError(
          "ambiguous-device",
          platform === undefined
            ? "platform: is required, for this token is registered on more than one"
            : "provider: is required, for this token is registered with more than one",
        );
      const change = { metadata, user, maxBytes: maxUnprovenBytes };
      const write = () => changeDevice(deps, projectId, holder._id, change, { byApp: true });
      return summary(await rejectErasedUser(deps, projectId, user, write));
    }),

    handleRequest(bus, DeleteDevice, async ({ projectId, deviceId }) => {
      if (!(await devices.remove(eventContext(projectId, now()), deviceId))) throw deviceNotFound();
      publishQueue.devices(projectId, [deviceId]);
      return {};
    }),

    handleRequest(bus, AuthenticateDevice, async ({ projectId, deviceId, credentialHash }) => {
      const device = await devices.find(projectId, deviceId);
      return {
        valid:
          device !== undefined && device.credentialHash !== "" && equalHashes(device.credentialHash, credentialHash),
      };
    }),
  ];
};
