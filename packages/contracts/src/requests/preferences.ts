import { z } from "zod";
import { defineRequest } from "../envelope.ts";
import { Preferences, PutUserPreferences } from "../http/v1/preferences.ts";
import { DeviceId, ProjectId } from "../ids.ts";
import { UserId, UserToken } from "../users.ts";

/** Of a device, or of a user, who need not have devices. */
const owner = { projectId: ProjectId, of: z.union([z.object({ device: DeviceId }), z.object({ user: UserId })]) };

/** Throws `device-not-found`. */
export const GetPreferences = defineRequest("registry.preferences.get", owner, Preferences);
/** Replaces all. Throws `device-not-found`, and `validation-failed` for kinds that are not declared, or critical and off. */
export const PutPreferences = defineRequest(
  "registry.preferences.put",
  { ...owner, preferences: PutUserPreferences.shape.preferences },
  Preferences,
);
/** The user of a user token. Throws `user-token-invalid`. */
export const AuthenticateUser = defineRequest(
  "registry.users.authenticate",
  { projectId: ProjectId, userToken: UserToken },
  z.object({ userId: UserId }),
);
