import { type EventMessage, eventSubject, eventTypeOf, headerNames, type ProjectId } from "@herald/contracts";
import { type Bus, connectionOf } from "./connect.ts";
import { readJson, timeOf } from "./message-format.ts";
import { directRead, type Stored, streamState } from "./read-stream.ts";
import { eventsOf } from "./received-message.ts";

const stream = "PUSH_EVENTS";

/** A place between two events: after the message of this sequence, or if `part` is given, after that many of its events. */
export type EventPosition = { readonly sequence: number; readonly part?: number };

/** An event in the stream and the position after it; without `event` when the query excludes its type, or when it is not JSON. */
export type StoredEvent = EventPosition & { readonly event?: EventMessage };

/** Large enough to use a connection fully, small enough for many readers: the largest event is half a MiB. */
const messagesAtATime = 100;
const bytesAtATime = 256 * 1_024;

const subjectOf = (projectId: ProjectId, types: ReadonlySet<string> | undefined): string => {
  const [only] = types?.size === 1 ? types : [];
  return eventSubject(projectId, only);
};

const toEvents = (stored: Stored, type: string): readonly (EventMessage | undefined)[] => {
  const { subject, headers, body, storedAt } = stored;
  const toEvent = (id: string | undefined, time: string | undefined, data: unknown): EventMessage | undefined =>
    data === undefined
      ? undefined
      : {
          id: id || subject,
          type,
          timestamp: timeOf(time ?? "", storedAt).toISOString(),
          data: data as EventMessage["data"],
        };
  return (
    eventsOf(stored)?.map(({ id, time, data }) => toEvent(id, time, data)) ?? [
      toEvent(headers.get(headerNames.ceId), headers.get(headerNames.ceTime), readJson(body)),
    ]
  );
};

/**
 * Reads the events of about a hundred messages of a project after a position; none at the end of the stream. It creates no consumer on the
 * broker, so a reader needs no permission to create or delete consumers. Throws HeraldError bus-unavailable.
 */
export const readEvents = async (
  bus: Bus,
  projectId: ProjectId,
  { after, types }: { after: EventPosition; types?: ReadonlySet<string> | undefined },
): Promise<StoredEvent[]> => {
  const query = {
    seq: nextSequence(after),
    batch: messagesAtATime,
    max_bytes: bytesAtATime,
    next_by_subj: subjectOf(projectId, types),
  };
  const messages = await directRead(connectionOf(bus), stream, query, (stored): StoredEvent[] => {
    const { sequence } = stored;
    const { type } = eventTypeOf(stored.subject) ?? {};
    const wanted = type !== undefined && (types === undefined || types.has(type));
    const events = wanted ? toEvents(stored, type) : [undefined];
    const read = sequence === after.sequence ? (after.part ?? 0) : 0;
    return events.slice(read).map((event, index, { length }) => ({
      sequence,
      ...(index < length - 1 && { part: read + index + 1 }),
      ...(event && { event }),
    }));
  });
  return messages.flat();
};

/** The sequence of the message that has the next event, or would have it. */
export const nextSequence = ({ sequence, part }: EventPosition): number =>
  part === undefined ? sequence + 1 : sequence;

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
