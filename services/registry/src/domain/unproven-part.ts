import type { Registration } from "./device-state.ts";

/** Fields that decide whether and where pushes arrive, by their names in the API. */
const provenFields = [
  ["environment", "environment"],
  ["app", "app"],
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
  const {
    environment: _,
    tokenKind: __,
    keys: ___,
    vapidKeyId: ____,
    installationId: _____,
    app: ______,
    ...rest
  } = registration;
  const ignored = provenFields.flatMap(([field, name]) => (registration[field] === undefined ? [] : [name]));
  // Such a client may only remove capabilities.
  const more = registration.capabilities?.length ? ["capabilities"] : [];
  return { registration: { ...rest, unproven: true } as One, ignored: [...ignored, ...more] };
};
