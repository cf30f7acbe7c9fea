import { sendRequest } from "@herald/bus";
import {
  type ExpandV1,
  ReadRecipients,
  type RecipientKind,
  RecordRecipients,
  readRecipientLines,
} from "@herald/contracts";
import { HeraldError } from "@herald/kit";
import type { Deps } from "../deps.ts";
import { allBuckets, bordersOf, partitionBatches, repartitionBatches } from "../domain/partition-batches.ts";
import { readRecipients } from "../requests/read-recipients.ts";

type PageDeps = Pick<Deps, "bus" | "audience" | "expansions" | "now">;

/**
 * Reads a chunk of recipients and partitions their devices into batches, as a page of an audience: a repeat uses the borders of the first
 * partition. Undefined when the notification has ended. Throws `service-unavailable` while the chunk is not stored.
 */
export const partitionRecipients = async (
  { bus, audience, expansions, now }: PageDeps,
  { projectId, notificationId, page, app, devicePaths, rules }: ExpandV1,
  kind: RecipientKind,
) => {
  const chunk = await sendRequest(bus, ReadRecipients, { projectId, notificationId, page });
  if (chunk.state === "ended") return undefined;
  if (chunk.state === "waiting") throw new HeraldError("service-unavailable", "the recipients are not stored yet");
  const { devices, unmatched } = await readRecipients(audience, {
    projectId,
    kind,
    lines: readRecipientLines(chunk.lines),
    app,
    devicePaths,
    rules,
  });
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
  return {
    batches: stored ? repartitionBatches(devices, stored.batches) : batches,
    partition: stored ?? partition,
    next: chunk.last ? undefined : {},
    record: () => sendRequest(bus, RecordRecipients, { projectId, notificationId, page, unmatched }),
  };
};
