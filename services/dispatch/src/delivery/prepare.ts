import { type Bus, sendRequest } from "@herald/bus";
import {
  CheckRecipients,
  type DeviceId,
  maxGroupSize,
  type ProjectId,
  type Recipient,
  ResolveSends,
  type SendV1,
  type Served,
} from "@herald/contracts";
import { createGroupCommit } from "@herald/kit";
import type { Sendable } from "../domain/settle-batch.ts";

/** Whom a send reaches: a batch for each platform and provider, devices sorted by id, and the targets that named no active device. */
export type Resolution = {
  readonly batches: readonly (Served & { readonly devices: Recipient[] })[];
  readonly unmatched: readonly string[];
};

/** Whom a send reaches now. `null`: more devices than a small send has, or targets that no index answers. */
export type ResolveSend = (send: SendV1) => Promise<Resolution | null>;

/** What is sent to more devices goes through pages and queues, which are fair to others and hold nothing in memory. */
const maxSmallAudience = 100;
/** Asks registry for the sends of the same moment together. Throws `service-unavailable` and `bus-unavailable`. */
export const createResolveSend = (bus: Bus): ResolveSend =>
  createGroupCommit<SendV1, Resolution | null>(
    async (sends) => {
      const request = sends.map(({ projectId, content }) => ({ projectId, targets: content.targets }));
      return (await sendRequest(bus, ResolveSends, { sends: request, limit: maxSmallAudience })).sends;
    },
    { max: maxGroupSize, concurrent: 1, keyOf: ({ projectId }) => projectId },
  );

/**
 * Which of the devices that waited may not be sent to any more: they are gone, inactive, or no longer the user's whose they were when
 * the audience was read. Throws `service-unavailable` while registry cannot be asked.
 */
export type CheckWaiting = (
  projectId: ProjectId,
  devices: readonly Pick<Sendable, "id" | "userId">[],
  /** What was for one person does not follow a device to its next user; what was for all does. */
  personal: boolean,
) => Promise<ReadonlySet<DeviceId>>;

const noDevices: ReadonlySet<DeviceId> = new Set();

/** What registry takes in one request. */
const maxChecked = 1_000;

type Check = { readonly projectId: ProjectId; readonly devices: ReadonlyMap<DeviceId, string | undefined> };

/** Devices of one project that are checked in one request, each for one user. */
type CheckRequest = { readonly projectId: ProjectId; readonly devices: Map<DeviceId, string | undefined> };

/** Asks registry for the devices of the same moment together. */
export const createCheckWaiting = (bus: Bus): CheckWaiting => {
  const fits = (request: CheckRequest, { projectId, devices }: Check): boolean =>
    request.projectId === projectId &&
    request.devices.size + devices.size <= maxChecked &&
    // Whether a device has moved is said of it, and not of its user.
    [...devices].every(([id, userId]) => !request.devices.has(id) || request.devices.get(id) === userId);

  const send = async ({ projectId, devices }: CheckRequest): Promise<ReadonlySet<DeviceId>> => {
    const asked = [...devices].map(([id, userId]) => ({ id, ...(userId !== undefined && { userId }) }));
    const { moved } = await sendRequest(bus, CheckRecipients, { projectId, devices: asked });
    return moved.length === 0 ? noDevices : new Set(moved);
  };

  const commit = createGroupCommit<Check, PromiseSettledResult<ReadonlySet<DeviceId>>>(
    async (checks) => {
      const requests: CheckRequest[] = [];
      const places = checks.map((check) => {
        let place = requests.findIndex((request) => fits(request, check));
        if (place < 0) place = requests.push({ projectId: check.projectId, devices: new Map() }) - 1;
        for (const [id, userId] of check.devices) requests[place]?.devices.set(id, userId);
        return place;
      });
      const answers = await Promise.allSettled(requests.map(send));
      return places.map((place) => answers[place] as PromiseSettledResult<ReadonlySet<DeviceId>>);
    },
    { max: maxGroupSize, concurrent: 1, keyOf: ({ projectId }) => projectId },
  );

  return async (projectId, devices, personal) => {
    if (devices.length === 0) return noDevices;
    const asked = new Map(devices.map(({ id, userId }) => [id, personal ? userId : undefined]));
    const result = await commit({ projectId, devices: asked });
    if (result.status === "rejected") throw result.reason;
    return result.value;
  };
};
