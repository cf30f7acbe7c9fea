import { ask, type Bus } from "@herald/bus";
import { CheckRecipients, type DeviceId, type ProjectId } from "@herald/contracts";
import type { Sendable } from "../domain/settle-batch.ts";

/**
 * Which of the devices that waited may not be sent to any more: they are gone, inactive, or no longer the user's whose they were when
 * the audience was read. Throws `service-away` while registry cannot be asked.
 */
export type CheckWaiting = (
  projectId: ProjectId,
  devices: readonly Pick<Sendable, "id" | "userId">[],
  /** What was for one person does not follow a device to its next user; what was for all does. */
  personal: boolean,
) => Promise<ReadonlySet<DeviceId>>;

const nobody: ReadonlySet<DeviceId> = new Set();

export const createCheckWaiting =
  (bus: Bus): CheckWaiting =>
  async (projectId, devices, personal) => {
    if (devices.length === 0) return nobody;
    const asked = devices.map(({ id, userId }) => ({ id, ...(personal && userId !== undefined && { userId }) }));
    const { moved } = await ask(bus, CheckRecipients, { projectId, devices: asked });
    return moved.length === 0 ? nobody : new Set(moved);
  };
