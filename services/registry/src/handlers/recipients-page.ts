import { sendRequest } from "@herald/bus";
import {
  type ExpandV1,
  ReadRecipients,
  type RecipientKind,
  RecordRecipients,
  readRecipientLines,
} from "@herald/contracts";
import { HeraldError, LRUCache } from "@herald/kit";
import type { Deps } from "../deps.ts";
import { allBuckets, bordersOf, partitionBatches, repartitionBatches } from "../domain/partition-batches.ts";
import { readRecipients } from "../requests/read-recipients.ts";

type PageDeps = Pick<Deps, "bus" | "audience" | "expansions" | "now">;

/** Reads a chunk and the devices of its recipients. Undefined when the notification has ended. */
const readChunk = async (
  { bus, audience }: PageDeps,
  { projectId, notificationId, page, app, devicePaths, rules }: ExpandV1,
  kind: RecipientKind,
) => {
  const chunk = await sendRequest(bus, ReadRecipients, { projectId, notificationId, page });
  if (chunk.state === "ended") return undefined;
  if (chunk.state === "waiting") throw new HeraldError("service-unavailable", "the recipients are not stored yet");
  const lines = readRecipientLines(chunk.lines);
  const found = await readRecipients(audience, { projectId, kind, lines, app, devicePaths, rules });
  return { ...found, last: chunk.last };
};

/** Chunks that are read ahead, with their devices some 2 MB each. More uploads at a time need none: their pages overlap anyway. */
const maxAhead = 8;
/** A page takes some 100 ms. Devices that waited longer than this, because the page before had to, are read again: their users may differ. */
const aheadMs = 2_000;

/**
 * Reads chunks of recipients and partitions their devices into batches, as pages of an audience: a repeat uses the borders of the first
 * partition. While a page is published, the chunk of the next one is read: that changes nothing, so another process may handle the next
 * page. Resolves to undefined when the notification has ended. Throws `service-unavailable` while the chunk is not stored.
 */
export const createPartitionRecipients = (deps: PageDeps) => {
  const { bus, expansions, now } = deps;
  const ahead = new LRUCache<string, ReturnType<typeof readChunk>>({
    max: maxAhead,
    ttl: aheadMs,
    ttlAutopurge: true,
  });
  const nameOf = ({ notificationId, page }: ExpandV1): string => `${notificationId}/${page}`;

  const takeChunk = async (data: ExpandV1, kind: RecipientKind) => {
    const known = ahead.get(nameOf(data));
    ahead.delete(nameOf(data));
    return (await known) ?? readChunk(deps, data, kind);
  };

  return async (data: ExpandV1, kind: RecipientKind) => {
    const { projectId, notificationId, page } = data;
    const chunk = await takeChunk(data, kind);
    if (chunk === undefined) return undefined;
    const { devices, unmatched, last } = chunk;
    const batches = partitionBatches(devices);
    const partition = { batches: bordersOf(batches), devices: devices.length, matched: [] };
    const stored = await expansions.insert(page, {
      projectId,
      notificationId,
      // A user's devices are in any bucket.
      fromBucket: allBuckets.from,
      toBucket: allBuckets.to,
      ...partition,
      at: now(),
    });
    if (!last && ahead.size < maxAhead) {
      const next = { ...data, page: page + 1 };
      // Whatever failed is tried again at the page's turn.
      const reading = readChunk(deps, next, kind).catch(() => undefined);
      ahead.set(nameOf(next), reading);
    }
    return {
      batches: stored ? repartitionBatches(devices, stored.batches) : batches,
      partition: stored ?? partition,
      next: last ? undefined : {},
      record: () => sendRequest(bus, RecordRecipients, { projectId, notificationId, page, unmatched }),
    };
  };
};
