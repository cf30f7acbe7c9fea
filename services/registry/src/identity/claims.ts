import { randomUUID } from "node:crypto";
import { type DeviceId, type ProjectId, userKey } from "@herald/contracts";
import type { ErasureStore } from "@herald/mongo";
import type { UserChange } from "../domain/device-change.ts";
import type { DeviceStore } from "../stores/device-store.ts";
import type { Announce } from "../stores/publish-queue.ts";
import { invalidUserToken, leewaySeconds, type VerifyUserToken } from "./verify-user-token.ts";

export type ClaimParts = {
  readonly verifyUserToken: VerifyUserToken;
  readonly erasures: ErasureStore;
  readonly devices: Pick<DeviceStore, "remove">;
  readonly announce: Announce;
  readonly now: () => Date;
};

export type Claim = Extract<UserChange, { by: "token" }>;

/** What a user token asks for; undefined without one. @throws HeraldError `user-token-invalid`. */
export const claimOf = async (
  { verifyUserToken }: ClaimParts,
  projectId: ProjectId,
  userToken: string | undefined,
): Promise<Claim | undefined> =>
  userToken === undefined ? undefined : { by: "token", ...(await verifyUserToken(projectId, userToken)) };

/**
 * Carries out what a claim allows, unless its user was erased since the token was made. Asked after the write: an erasure notes itself
 * before it looks for devices, so of the two at least one sees the other. What was written then is removed again.
 */
export const unlessErased = async <Device extends { readonly _id: DeviceId }>(
  { erasures, devices, announce, now }: ClaimParts,
  projectId: ProjectId,
  claim: Claim | undefined,
  write: () => Promise<Device>,
): Promise<Device> => {
  const device = await write();
  if (claim === undefined) return device;
  const erasedAt = await erasures.find(projectId, userKey(projectId, claim.userId));
  if (erasedAt === undefined || claim.issuedAt * 1_000 > erasedAt.getTime() + leewaySeconds * 1_000) return device;
  if (await devices.remove({ projectId, at: now(), newId: randomUUID }, device._id, claim.userId))
    announce.devices(projectId, [device._id]);
  throw invalidUserToken("was made before this user was erased; a new account needs a new login");
};
