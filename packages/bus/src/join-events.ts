import { hash } from "node:crypto";
import { batchedTypes, eventBatchType, headerNames } from "@herald/contracts";
import type { Origin } from "./message-format.ts";
import type { Encoded } from "./publish.ts";

/** A message costs the broker 20 µs, so more would save little; and all are repeated together when a consumer fails. */
const maxEvents = 100;
/**
 * An eighth of what the broker accepts in a message. A consumer that fetches a hundred messages gets at most 12 MB, and one read of
 * `GET /events` gets two messages.
 */
const maxBytes = 131_072;

/** An encoded event, and the request that it is of. */
export type EncodedEvent = Encoded & {
  readonly body: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly origin: Origin;
};

/** Events of several requests share a message. */
const noOrigin: Origin = {};

/** Events that become one message. Messages are published in the order of `place`. */
type Batch = {
  place: number;
  readonly entries: string[];
  readonly events: EncodedEvent[];
  bytes: number;
  /** An event about an entity of this batch is in a later message, so this one must stay before it. */
  followed: boolean;
};

/**
 * Joins events of one type and project into CloudEvents' JSON batches. An event without others stays as it is. Events about one entity,
 * such as a device, keep their order; repeats of one event are joined.
 */
export const joinEvents = (events: readonly EncodedEvent[]): EncodedEvent[] => {
  const batches: Batch[] = [];
  const open = new Map<string, Batch>();
  const latest = new Map<string, Batch>();
  const ids = new Set<string>();
  let places = 0;

  for (const event of events) {
    if (ids.has(event.messageId)) continue;
    ids.add(event.messageId);
    const isBatched = batchedTypes.has(event.headers[headerNames.ceType] ?? "");
    const entry = isBatched ? entryOf(event) : "";
    const bytes = Buffer.byteLength(entry) + 1;
    const entity = event.headers[headerNames.ceSubject] ?? "";
    const earlier = latest.get(entity);
    let batch = isBatched ? open.get(event.subject) : undefined;
    if (batch && (batch.entries.length === maxEvents || batch.bytes + bytes > maxBytes)) batch = undefined;
    if (batch && earlier && earlier.place > batch.place) {
      if (batch.followed) batch = undefined;
      else batch.place = places++;
    }
    if (batch === undefined) {
      batch = { place: places++, entries: [], events: [], bytes: 1, followed: false };
      batches.push(batch);
      if (isBatched) open.set(event.subject, batch);
    }
    batch.entries.push(entry);
    batch.events.push(event);
    batch.bytes += bytes;
    if (earlier && earlier !== batch) earlier.followed = true;
    latest.set(entity, batch);
  }
  return batches.toSorted((one, other) => one.place - other.place).map(messageOf);
};

/** The event in structured mode: attributes and data in one object. */
const entryOf = ({ headers, body, origin: { requestId, traceparent } }: EncodedEvent): string => {
  const attributes = {
    specversion: headers[headerNames.ceSpecVersion],
    id: headers[headerNames.ceId],
    source: headers[headerNames.ceSource],
    type: headers[headerNames.ceType],
    time: headers[headerNames.ceTime],
    subject: headers[headerNames.ceSubject],
    requestid: requestId,
    traceparent,
  };
  return `${JSON.stringify(attributes).slice(0, -1)},"data":${body}}`;
};

const messageOf = ({ entries, events }: Batch): EncodedEvent => {
  const [first] = events;
  if (first === undefined) throw new RangeError("a batch has at least one event");
  if (events.length === 1) return first;
  // A repeat of the same events has the same id. In other company an event is stored again, and consumers drop it by its own id.
  const messageId = `events/${hash("sha256", events.map((event) => event.messageId).join("\n"), "base64url")}`;
  return {
    pattern: first.pattern,
    subject: first.subject,
    body: `[${entries.join(",")}]`,
    messageId,
    headers: { [headerNames.contentType]: eventBatchType },
    origin: noOrigin,
  };
};
