import { z } from "zod";
import { defineRequest } from "../envelope.ts";
import { User, UserSummary } from "../http/v1/devices.ts";
import { CreateIdentityKey, IdentityKey } from "../http/v1/identity.ts";
import { KeysetRequest, keysetPageOf, PageRequest, pageOf } from "../http/v1/pagination.ts";
import { DeviceId, IdentityKeyId, NotificationId, ProjectId } from "../ids.ts";
import { UserId } from "../users.ts";

const project = { projectId: ProjectId };

/** Makes a secret, or registers a public key. The gateway makes the id, so that a repeated request makes one key. */
export const CreateIdentityKeyRequest = defineRequest(
  "registry.identity-keys.create",
  z.object({ ...project, keyId: IdentityKeyId, publicKey: CreateIdentityKey.shape.public_key }),
  z.object({ key: IdentityKey, secret: z.string().optional() }),
);
export const ListIdentityKeys = defineRequest(
  "registry.identity-keys.list",
  z.object({ ...project, page: PageRequest }),
  pageOf(IdentityKey),
);
export const DeleteIdentityKey = defineRequest(
  "registry.identity-keys.delete",
  z.object({ ...project, keyId: IdentityKeyId }),
  z.object({}),
);

const user = { ...project, userId: UserId };
export const GetUser = defineRequest("registry.users.get", z.object(user), User);
/** The users who have devices, by id. A page may have fewer rows than it could, and still a `next`. */
export const ListUsers = defineRequest(
  "registry.users.list",
  z.object({ ...project, page: KeysetRequest }),
  keysetPageOf(UserSummary),
);
/** Deletes the user's devices and has every service forget the user. Repeatable. */
export const EraseUser = defineRequest(
  "registry.users.erase",
  z.object(user),
  z.object({ erasedAt: z.iso.datetime() }),
);

/**
 * Which of up to 1,000 devices may no longer get what waited for them: they are gone, inactive, or no longer belong to the user that
 * they belonged to when the audience was read. `userId` is that user; absent where it does not matter.
 */
export const CheckRecipients = defineRequest(
  "registry.audience.check",
  z.object({
    ...project,
    devices: z
      .array(z.object({ id: DeviceId, userId: z.string().optional() }))
      .min(1)
      .max(1000),
  }),
  z.object({ moved: z.array(DeviceId) }),
);

/** The user of each device when its notification was sent, in the order of the request; null: no user, or a large audience. */
export const UsersOfDeliveries = defineRequest(
  "dispatch.deliveries.users",
  z.object({
    ...project,
    deliveries: z
      .array(z.object({ notificationId: NotificationId, deviceId: DeviceId }))
      .min(1)
      .max(1000),
  }),
  z.object({
    users: z.array(z.string().nullable()),
    /** {@link Tag}s by notification; those without any are absent. */
    tags: z.record(z.string(), z.array(z.string())).optional(),
  }),
);
