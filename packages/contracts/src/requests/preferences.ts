import { z } from "zod";
import { defineRequests, oneRequest } from "../envelope.ts";
import { Preferences, PutUserPreferences } from "../http/v1/preferences.ts";
import { DeviceId, ProjectId } from "../ids.ts";
import { UserId } from "../users.ts";

/** Of a device, or of a user, who need not have devices. */
const owner = { projectId: ProjectId, of: z.union([z.object({ device: DeviceId }), z.object({ user: UserId })]) };

export const preferenceRequests = defineRequests("registry.preferences", {
  /** Throws `device-not-found`. */
  get: oneRequest(owner, Preferences),
  /** Replaces all. Throws `device-not-found`, and `validation-failed` for kinds that are not declared, or critical and off. */
  put: oneRequest({ ...owner, preferences: PutUserPreferences.shape.preferences }, Preferences),
});
