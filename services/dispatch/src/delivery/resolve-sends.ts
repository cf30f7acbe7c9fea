import { ask, type Bus } from "@herald/bus";
import { type Addressee, maxGroupSize, type Platform, ResolveSends, type SendV1 } from "@herald/contracts";
import { createGroupCommit } from "@herald/kit";

/** Whom a send reaches: a batch for each platform, devices sorted by id, and the targets that named no active device. */
export type Resolution = {
  readonly batches: readonly { readonly platform: Platform; readonly devices: Addressee[] }[];
  readonly unmatched: readonly string[];
};

/** Whom a send reaches now. `null`: more devices than a small send has, or targets that no index answers. */
export type ResolveSend = (send: SendV1) => Promise<Resolution | null>;

/** What is sent to more devices goes through pages and queues, which are fair to others and hold nothing in memory. */
const maxSmallAudience = 100;
/** While one request is answered the next is on its way. */
const concurrentRequests = 2;

/** Asks registry for the sends of the same moment together. Throws `service-away` and `bus-away`. */
export const createResolveSend = (bus: Bus): ResolveSend =>
  createGroupCommit<SendV1, Resolution | null>(
    async (sends) => {
      const request = sends.map(({ projectId, content }) => ({ projectId, targets: content.targets }));
      return (await ask(bus, ResolveSends, { sends: request, limit: maxSmallAudience })).sends;
    },
    { most: maxGroupSize, concurrent: concurrentRequests },
  );
