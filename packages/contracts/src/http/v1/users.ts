import { z } from "zod";
import { named } from "../../named.ts";
import { UserId, UserIdPrefix } from "../../users.ts";
import { Device } from "./devices.ts";
import { keysetQuery } from "./pagination.ts";

/** A user's devices. */
export const User = named("User", {
  user_id: UserId,
  devices: z.array(Device).meta({ description: "At most 100 of them, oldest first" }),
  device_count: z.number().int().min(0).meta({ description: "All of them" }),
  last_seen_at: z.iso.datetime().meta({ description: "When one of these devices last changed or was identified" }),
});
export type User = z.infer<typeof User>;

/** The maximum number of one user's devices that a list counts. */
export const maxCountedDevices = 1_000;

/** A user in a list. */
export const UserSummary = named("UserSummary", {
  user_id: UserId,
  device_count: z
    .number()
    .int()
    .min(1)
    .max(maxCountedDevices)
    .meta({ description: `Their devices, counted up to ${maxCountedDevices}`, examples: [2] }),
  last_seen_at: User.shape.last_seen_at,
});

/** The query of `GET /users`. */
export const UserListQuery = z.strictObject({
  ...keysetQuery,
  prefix: UserIdPrefix.optional().meta({ description: "Only users whose id begins with this", examples: ["u_84"] }),
});

/** The answer to `DELETE /users/{user}`. */
export const UserErasure = named("UserErasure", {
  user_id: UserId,
  erased_at: z.iso.datetime().meta({ description: "Earlier user tokens of this user are refused" }),
  databases: z.literal("within an hour"),
  streams: z.literal("within 30 days, as messages expire"),
  backups: z.literal("yours to delete: Herald has no access to them"),
});
