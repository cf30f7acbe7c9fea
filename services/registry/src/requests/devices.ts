import { timingSafeEqual } from "node:crypto";
import { handleRequest, type RequestListener } from "@herald/bus";
import {
  type DeviceSummary,
  deviceRequests,
  type ProjectId,
  servingProvider,
  userKey,
  userRequests,
} from "@herald/contracts";
import { existing, HeraldError, notFound } from "@herald/kit";
import { encodeAfter, mapPage } from "@herald/mongo";
import type { Deps } from "../deps.ts";
import type { UserChange } from "../domain/device-state.ts";
import { eventContext } from "../domain/registry-events.ts";
import { invalidUserToken, leewaySeconds } from "../identity/verify-user-token.ts";
import type { DeviceDocument } from "../stores/device-document.ts";
import { changeDevice, deviceNotFound, deviceView } from "./change-device.ts";
import { exportDevices, formatPosition, listPosition, matchDevices } from "./match-devices.ts";
import { type PutDevicesDeps, parseDevices, putDevices } from "./put-devices.ts";
import { registerDevice } from "./register-device.ts";

const summary = ({ _id, status }: DeviceDocument): DeviceSummary => ({ id: _id, status });

/** In constant time. Both are SHA-256 in hex. */
const equalHashes = (one: string, other: string): boolean =>
  one.length === other.length && timingSafeEqual(Buffer.from(one), Buffer.from(other));

type TokenClaim = Extract<UserChange, { by: "token" }>;

/** Whether the claim's user was erased after the token was issued. */
const isErased = async (
  { erasures }: Pick<Deps, "erasures">,
  projectId: ProjectId,
  { userId, issuedAt }: TokenClaim,
): Promise<boolean> => {
  const erasedAt = await erasures.find(projectId, userKey(projectId, userId));
  return erasedAt !== undefined && issuedAt * 1_000 <= erasedAt.getTime() + leewaySeconds * 1_000;
};

const erasedUser = () => invalidUserToken("was made before this user was erased; a new account needs a new login");

/** Undefined without a user token. @throws HeraldError `user-token-invalid`. */
const verifyClaim = async (
  deps: Pick<Deps, "erasures" | "verifyUserToken">,
  projectId: ProjectId,
  userToken: string | undefined,
): Promise<TokenClaim | undefined> => {
  if (userToken === undefined) return undefined;
  const claim: TokenClaim = { by: "token", ...(await deps.verifyUserToken(projectId, userToken)) };
  // Before anything is written: otherwise an erased account could take a device whose push token it knows, and with it remove the device.
  if (await isErased(deps, projectId, claim)) throw erasedUser();
  return claim;
};

/**
 * Call it after the device is written: removes it again if its user was erased meanwhile. An erasure is stored before its devices are read,
 * so either the erasure finds the device or this function finds the erasure.
 */
const rejectErasedUser = async (
  deps: Pick<Deps, "devices" | "erasures" | "now" | "publishSoon">,
  { projectId, _id }: Pick<DeviceDocument, "projectId" | "_id">,
  claim: TokenClaim | undefined,
): Promise<void> => {
  if (claim === undefined || !(await isErased(deps, projectId, claim))) return;
  const { devices, publishSoon, now } = deps;
  if (await devices.remove(eventContext(projectId, now()), _id, claim.userId)) publishSoon.devices(projectId, [_id]);
  throw erasedUser();
};

/** Maximum of metadata and of identifiers, each, from clients without a credential. */
const maxUnprovenBytes = 10_240;

type DeviceRequestDeps = PutDevicesDeps & Pick<Deps, "audience" | "bus" | "erasures" | "verifyUserToken">;

export const handleDeviceRequests = (deps: DeviceRequestDeps): RequestListener[] => {
  const { bus, devices, publishSoon, now } = deps;
  return [
    handleRequest(bus, deviceRequests.register, async ({ userId, ...wanted }) => {
      const user = userId === undefined ? undefined : ({ by: "project", userId } as const);
      const registration = { ...wanted, user, byProject: true };
      const { device, credential, created } = await registerDevice(deps, registration, "rotate");
      return { device: deviceView(device), credential: credential ?? "", created };
    }),

    handleRequest(bus, deviceRequests.identify, async ({ userToken, ...wanted }) => {
      const user = await verifyClaim(deps, wanted.projectId, userToken);
      // An app that does not name them may be of a version without a kit.
      const capabilities = wanted.capabilities ?? [];
      const registration = { ...wanted, capabilities, topics: [], user, maxBytes: maxUnprovenBytes };
      const { device, credential, created, ignored } = await registerDevice(deps, registration, "first");
      await rejectErasedUser(deps, device, user);
      return {
        device: summary(device),
        ...(credential && { credential }),
        created,
        ...(ignored && { ignored: [...ignored] }),
      };
    }),

    handleRequest(bus, userRequests.authenticate, async ({ projectId, userToken }) => {
      const { userId } = (await verifyClaim(deps, projectId, userToken)) ?? {};
      if (userId === undefined) throw invalidUserToken("is missing");
      return { userId };
    }),

    handleRequest(bus, deviceRequests.put, async ({ projectId, devices: entries }) => {
      const parsed = await parseDevices(entries, (device) => ({ device }));
      return { results: await putDevices(deps, projectId, parsed) };
    }),

    handleRequest(bus, deviceRequests.list, async ({ projectId, page, match, status, ...filter }, { signal }) => {
      if (match === undefined) return mapPage(await devices.list(projectId, { ...filter, status }, page), deviceView);
      const { createdAfter, createdBefore, perPage } = page;
      const wanted = { ...filter, projectId, match, createdAfter, createdBefore, perPage, start: listPosition(page) };
      const { data, next } = await matchDevices(deps, wanted, signal);
      return { data: data.map(deviceView), next: next && encodeAfter(formatPosition(next)) };
    }),

    handleRequest(bus, deviceRequests.export, (request, { signal }) => exportDevices(deps, request, signal)),

    handleRequest(bus, deviceRequests.get, async ({ projectId, deviceId }) =>
      deviceView(existing(await devices.find(projectId, deviceId), deviceNotFound)),
    ),

    handleRequest(
      bus,
      deviceRequests.change,
      async ({ projectId, deviceId, change, ofUser, byApp, ...subscribedWith }) => {
        const { user_id: userId, user_token: userToken, installation_id: installationId, ...rest } = change;
        const claim = await verifyClaim(deps, projectId, userToken);
        const user = userId === undefined ? claim : ({ by: "project", userId } as const);
        const whole = { ...rest, ...subscribedWith, installationId, user, byProject: !byApp };
        const device = await changeDevice(deps, projectId, deviceId, whole, { ofUser, byApp });
        await rejectErasedUser(deps, device, claim);
        return deviceView(device);
      },
    ),

    handleRequest(
      bus,
      deviceRequests.changeByToken,
      async ({ projectId, token, platform, provider, metadata, userToken }) => {
        const user = await verifyClaim(deps, projectId, userToken);
        const holders = await devices.findHolders(projectId, token, platform && [platform]);
        const [holder, other] = holders.filter((one) => provider === undefined || servingProvider(one) === provider);
        if (!holder) throw notFound("device-not-found", "identifier", "no device of the project has this push token");
        if (other)
          throw new HeraldError(
            "ambiguous-device",
            platform === undefined
              ? "platform: is required, for this token is registered on more than one"
              : "provider: is required, for this token is registered with more than one",
          );
        const change = { metadata, user, maxBytes: maxUnprovenBytes, unproven: true };
        const device = await changeDevice(deps, projectId, holder._id, change, { byApp: true });
        await rejectErasedUser(deps, device, user);
        return summary(device);
      },
    ),

    handleRequest(bus, deviceRequests.delete, async ({ projectId, deviceId }) => {
      if (!(await devices.remove(eventContext(projectId, now()), deviceId))) throw deviceNotFound();
      publishSoon.devices(projectId, [deviceId]);
      return {};
    }),

    handleRequest(bus, deviceRequests.authenticate, async ({ projectId, deviceId, credentialHash }) => {
      const device = await devices.find(projectId, deviceId);
      return {
        valid:
          device !== undefined && device.credentialHash !== "" && equalHashes(device.credentialHash, credentialHash),
      };
    }),
  ];
};
