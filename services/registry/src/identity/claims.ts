import { type DeviceId, type ProjectId, userKey } from "@herald/contracts";
import type { Deps } from "../deps.ts";
import type { UserChange } from "../domain/device-change.ts";
import { eventContext } from "../domain/registry-events.ts";
import { invalidUserToken, leewaySeconds } from "./verify-user-token.ts";

export type TokenClaim = Extract<UserChange, { by: "token" }>;

/** Undefined without a user token. @throws HeraldError `user-token-invalid`. */
export const verifyClaim = async (
  { verifyUserToken }: Deps,
  projectId: ProjectId,
  userToken: string | undefined,
): Promise<TokenClaim | undefined> =>
  userToken === undefined ? undefined : { by: "token", ...(await verifyUserToken(projectId, userToken)) };

/**
 * Runs `write`, then removes the device again if its user was erased after the token was issued. An erasure is stored before it looks for
 * devices, so either it finds the device or this finds the erasure.
 */
export const rejectErasedUser = async <Device extends { readonly _id: DeviceId }>(
  { erasures, devices, publishQueue, now }: Deps,
  projectId: ProjectId,
  claim: TokenClaim | undefined,
  write: () => Promise<Device>,
): Promise<Device> => {
  const device = await write();
  if (claim === undefined) return device;
  const erasedAt = await erasures.find(projectId, userKey(projectId, claim.userId));
  if (erasedAt === undefined || claim.issuedAt * 1_000 > erasedAt.getTime() + leewaySeconds * 1_000) return device;
  if (await devices.remove(eventContext(projectId, now()), device._id, claim.userId))
    publishQueue.devices(projectId, [device._id]);
  throw invalidUserToken("was made before this user was erased; a new account needs a new login");
};
