import { z } from "zod";
import { AskedRules } from "../asked-rules.ts";
import { defineList, defineRequest } from "../envelope.ts";
import { CreateIdentityKey, IdentityKey } from "../http/v1/identity.ts";
import { User, UserListQuery, UserSummary } from "../http/v1/users.ts";
import { DeviceId, IdentityKeyId, NotificationId, ProjectId } from "../ids.ts";
import { UserId } from "../users.ts";

const project = { projectId: ProjectId };

/** Creates a secret, or registers a public key. The gateway creates the id, so that a repeated request creates only one key. */
export const CreateIdentityKeyRequest = defineRequest(
  "registry.identity-keys.create",
  { ...project, keyId: IdentityKeyId, publicKey: CreateIdentityKey.shape.public_key },
  z.object({ key: IdentityKey, secret: z.string().optional() }),
);
export const ListIdentityKeys = defineList("registry.identity-keys.list", project, IdentityKey);
export const DeleteIdentityKey = defineRequest(
  "registry.identity-keys.delete",
  { ...project, keyId: IdentityKeyId },
  z.object({}),
);

const user = { ...project, userId: UserId };
export const GetUser = defineRequest("registry.users.get", user, User);
/** The users with devices, by id. A short page may still have a `next`. */
export const ListUsers = defineList("registry.users.list", project, UserSummary, UserListQuery);
/** Deletes the user's devices, and makes every service erase the user. Repeatable. */
export const EraseUser = defineRequest("registry.users.erase", user, z.object({ erasedAt: z.iso.datetime() }));

/**
 * The devices, of up to 1,000, that may no longer get their waiting notifications: they are deleted, inactive, or have another user than
 * when the audience was read. `userId` is that earlier user; absent if it does not matter. `kind`: the others that do not get it now by
 * choice are `muted`.
 */
export const CheckRecipients = defineRequest(
  "registry.audience.check",
  {
    ...project,
    devices: z
      .array(z.object({ id: DeviceId, userId: z.string().optional() }))
      .min(1)
      .max(1000),
    kind: AskedRules.shape.kind,
  },
  z.object({ moved: z.array(DeviceId), muted: z.array(DeviceId).optional() }),
);

/** The user of each device when its notification was sent, in the order of the request. Null: no user, or a large audience. */
export const UsersOfDeliveries = defineRequest(
  "dispatch.deliveries.users",
  {
    ...project,
    deliveries: z
      .array(z.object({ notificationId: NotificationId, deviceId: DeviceId }))
      .min(1)
      .max(1000),
    /** Of these notifications, the ids of the buttons. */
    buttonsOf: z.array(NotificationId).optional(),
  },
  z.object({
    users: z.array(z.string().nullable()),
    /** {@link Tag}s by notification; absent for notifications without tags. */
    tags: z.record(z.string(), z.array(z.string())).optional(),
    /** By notification; absent for notifications without buttons. */
    buttons: z.record(z.string(), z.array(z.string())).optional(),
  }),
);
