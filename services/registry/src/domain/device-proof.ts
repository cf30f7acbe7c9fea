import type { CommonChange, DeviceState, Registration } from "./device-change.ts";

export type UserChange =
  | { readonly by: "project"; readonly userId: string | null }
  | { readonly by: "token"; readonly userId: string; readonly issuedAt: number };

/** Whether a request that shows this user token is of the device, without its credential. */
export const provesUser = (user: UserChange | undefined, device: DeviceState): boolean =>
  user?.by === "token" && user.userId === device.userId && device.userClaimed === undefined;

/** The same object when nothing changes. Undefined when the user token is not newer than the last one. */
export const withUser = (
  before: DeviceState,
  { user: change, unproven }: CommonChange,
  now: Date,
): DeviceState | undefined => {
  if (change === undefined) return before;
  const { userId: _, identifiedAt: __, userClaimed, ...rest } = before;
  if (change.by === "project") {
    if (change.userId === null) return before.userId === undefined ? before : rest;
    const same = change.userId === before.userId && userClaimed === undefined;
    return same ? before : { ...rest, userId: change.userId, identifiedAt: now };
  }
  const { userId, issuedAt } = change;
  if (before.userTokenIat !== undefined && issuedAt <= before.userTokenIat)
    return userId === before.userId ? before : undefined;
  const claimed = unproven === true && !provesUser(change, before);
  return { ...rest, userId, identifiedAt: now, userTokenIat: issuedAt, ...(claimed && { userClaimed: true }) };
};

/** Fields that decide whether and where pushes arrive, by their names in the API. */
const provenFields = [
  ["environment", "environment"],
  ["installationId", "installation_id"],
  ["keys", "keys"],
  ["tokenKind", "token_kind"],
] as const;

/**
 * The part of a registration that needs only the push token of a known device, and the fields that it leaves out. They do not depend on
 * what is stored, so they reveal nothing.
 */
export const unprovenPart = <One extends Registration>(
  registration: One,
): { readonly registration: One; readonly ignored: readonly string[] } => {
  const { environment: _, tokenKind: __, keys: ___, vapidKeyId: ____, installationId: _____, ...rest } = registration;
  const ignored = provenFields.flatMap(([field, name]) => (registration[field] === undefined ? [] : [name]));
  return { registration: { ...rest, unproven: true } as One, ignored };
};
