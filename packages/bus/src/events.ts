import { type EventMessage, eventSubject, eventTypeOf, headerNames, type ProjectId } from "@herald/contracts";
import { type Bus, connectionOf } from "./connect.ts";
import { readJson, timeOf } from "./message-format.ts";
import { directRead, type Stored, streamState } from "./read-stream.ts";

const stream = "PUSH_EVENTS";

/** An event in the stream; without `event` when the query excludes its type, or when it is not JSON. */
export type StoredEvent = { readonly sequence: number; readonly event?: EventMessage };

/** Large enough to use a connection fully, small enough for many readers: the largest event is half a MiB. */
const eventsAtATime = 100;
const bytesAtATime = 256 * 1_024;

const subjectOf = (projectId: ProjectId, types: ReadonlySet<string> | undefined): string => {
  const [only] = types?.size === 1 ? types : [];
  return eventSubject(projectId, only);
};

const toEvent = ({ subject, headers, body, storedAt }: Stored, type: string): EventMessage | undefined => {
  const data = readJson(body);
  if (data === undefined) return undefined;
  const timestamp = timeOf(headers.get(headerNames.ceTime), storedAt).toISOString();
  return { id: headers.get(headerNames.ceId) || subject, type, timestamp, data: data as EventMessage["data"] };
};

/**
 * Reads about a hundred events of a project from a sequence on; none at the end of the stream. It creates no consumer on the broker, so
 * a reader needs no permission to create or delete consumers. Throws HeraldError bus-unavailable.
 */
export const readEvents = (
  bus: Bus,
  projectId: ProjectId,
  { from, types }: { from: number; types?: ReadonlySet<string> | undefined },
): Promise<StoredEvent[]> => {
  const query = { seq: from, batch: eventsAtATime, max_bytes: bytesAtATime, next_by_subj: subjectOf(projectId, types) };
  return directRead(connectionOf(bus), stream, query, (stored) => {
    const { sequence } = stored;
    const { type } = eventTypeOf(stored.subject) ?? {};
    const wanted = type !== undefined && (types === undefined || types.has(type));
    const event = wanted ? toEvent(stored, type) : undefined;
    return event === undefined ? { sequence } : { sequence, event };
  });
};

/** The sequence of a project's first event that the stream stored at or after a time. Throws HeraldError bus-unavailable. */
export const firstEventSince = async (bus: Bus, projectId: ProjectId, since: Date): Promise<number | undefined> => {
  const query = { start_time: since.toISOString(), batch: 1, next_by_subj: subjectOf(projectId, undefined) };
  const [sequence] = await directRead(connectionOf(bus), stream, query, (stored) => stored.sequence);
  return sequence;
};

/** The first and the last sequence of all stored events; without any, `first` is `last` + 1. Throws HeraldError bus-unavailable. */
export const eventBounds = async (bus: Bus): Promise<{ readonly first: number; readonly last: number }> => {
  const { first_seq, last_seq } = await streamState(connectionOf(bus), stream);
  return { first: Math.max(1, first_seq), last: last_seq };
};

/**
 * Calls `onEvent` when an event of a project is published: a hint to read again, for readers that also poll. The call may come a moment
 * before the event can be read, and it does not come for events that are published while the connection is down. Returns `unsubscribe`.
 */
export const subscribeToEvents = (bus: Bus, projectId: ProjectId, onEvent: () => void): (() => void) => {
  const subscription = connectionOf(bus).nc.subscribe(subjectOf(projectId, undefined), { callback: () => onEvent() });
  return () => subscription.unsubscribe();
};
