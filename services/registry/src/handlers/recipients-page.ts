import { isDeepStrictEqual } from "node:util";
import { sendRequest } from "@herald/bus";
import {
  type ExpandV1,
  type PlaceInChunk,
  pagesOfExpansion,
  type RecipientKind,
  readRecipientKeys,
  recipientRequests,
} from "@herald/contracts";
import { HeraldError, LRUCache } from "@herald/kit";
import type { Deps } from "../deps.ts";
import { allBuckets, bordersOf, partitionBatches, repartitionBatches } from "../domain/partition-batches.ts";
import { readRecipients } from "../requests/read-recipients.ts";

type PageDeps = Pick<Deps, "bus" | "audience" | "expansions" | "now">;

/** The chunk of a page. */
const chunkOf = ({ page }: ExpandV1): number => Math.floor(page / pagesOfExpansion);
/** Where a page begins in its chunk, and the lines without an active device before. */
const partOf = ({ part }: ExpandV1) => part ?? { line: 0, unmatched: [] };

/** Reads a page of a chunk: recipients and their devices. `again`: up to another end. Undefined when the notification has ended. */
const readPage = async ({ bus, audience }: PageDeps, data: ExpandV1, kind: RecipientKind) => {
  const { projectId, notificationId, app, devicePaths, rules } = data;
  const { unmatched: _, ...from } = partOf(data);
  const chunk = await sendRequest(bus, recipientRequests.read, { projectId, notificationId, chunk: chunkOf(data) });
  if (chunk.state === "ended") return undefined;
  if (chunk.state === "waiting") throw new HeraldError("service-unavailable", "the recipients are not stored yet");
  const keys = readRecipientKeys(chunk.keys);
  const again = (to?: PlaceInChunk) =>
    readRecipients(audience, { projectId, kind, keys, from, to, app, devicePaths, rules });
  return { found: await again(), again, lines: keys.length, last: chunk.last };
};

/** Pages that are read ahead, with their devices some 2 MB each. More uploads at a time need none: their pages overlap anyway. */
const maxAhead = 8;
/** A page takes some 100 ms. Devices that waited longer than this, because the page before had to, are read again: their users may differ. */
const aheadMs = 2_000;

/**
 * Reads chunks of recipients and partitions their devices into batches, as pages of an audience: a repeat uses the borders of the first
 * partition. A chunk is a page, or several if it has very many devices. While a page is published, the next one is read: that changes
 * nothing, so another process may handle the next page. Resolves to undefined when the notification has ended. Throws `service-unavailable`
 * while the chunk is not stored.
 */
export const createPartitionRecipients = (deps: PageDeps) => {
  const { bus, expansions, now } = deps;
  const ahead = new LRUCache<string, ReturnType<typeof readPage>>({
    max: maxAhead,
    ttl: aheadMs,
    ttlAutopurge: true,
  });
  const nameOf = ({ notificationId, page }: ExpandV1): string => `${notificationId}/${page}`;

  const takePage = async (data: ExpandV1, kind: RecipientKind) => {
    const known = ahead.get(nameOf(data));
    ahead.delete(nameOf(data));
    return (await known) ?? readPage(deps, data, kind);
  };

  return async (data: ExpandV1, kind: RecipientKind) => {
    const { projectId, notificationId, page } = data;
    const read = await takePage(data, kind);
    if (read === undefined) return undefined;
    const batches = partitionBatches(read.found.devices);
    const partition = { batches: bordersOf(batches), devices: read.found.devices.length, matched: [] };
    const stored = await expansions.insert(page, {
      projectId,
      notificationId,
      // A user's devices are in any bucket.
      fromBucket: allBuckets.from,
      toBucket: allBuckets.to,
      ...partition,
      to: read.found.to,
      at: now(),
    });
    const isSame = !stored?.to || isDeepStrictEqual(stored.to, read.found.to);
    const { devices, unmatched: own, to } = isSame ? read.found : await read.again(stored.to);

    const unmatched = [...partOf(data).unmatched, ...own];
    const isWhole = to.line >= read.lines;
    const chunk = chunkOf(data);
    const rest = isWhole
      ? { page: (chunk + 1) * pagesOfExpansion, part: undefined }
      : { page: page + 1, part: { ...to, unmatched } };
    const next = isWhole && read.last ? undefined : rest;
    if (next && ahead.size < maxAhead) {
      const following = { ...data, ...next };
      // Whatever failed is tried again at the page's turn.
      const reading = readPage(deps, following, kind).catch(() => undefined);
      ahead.set(nameOf(following), reading);
    }
    return {
      batches: stored ? repartitionBatches(devices, stored.batches) : batches,
      partition: stored ?? partition,
      next,
      // Once for a chunk, with all its lines.
      ...(isWhole && {
        record: () => sendRequest(bus, recipientRequests.record, { projectId, notificationId, chunk, unmatched }),
      }),
    };
  };
};
