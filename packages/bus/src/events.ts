import { type EventMessage, eventSubject, eventTypeOf, headerNames, type ProjectId } from "@herald/contracts";
import { notConnected, toBusError } from "./bus-error.ts";
import { type Bus, connectionOf } from "./connect.ts";
import { directRead, type Stored } from "./direct-read.ts";

const stream = "PUSH_EVENTS";

/** An event as the stream holds it; without `event` where it is none of the wanted types, or no JSON. */
export type StoredEvent = { readonly sequence: number; readonly event?: EventMessage };

/** Enough to use a connection fully, and little enough for many readers: the largest event is half a MiB. */
const eventsAtATime = 100;
const bytesAtATime = 256 * 1_024;

const subjectOf = (projectId: ProjectId, types: ReadonlySet<string> | undefined): string => {
  const [only] = types?.size === 1 ? types : [];
  return eventSubject(projectId, only);
};

const toEvent = ({ subject, headers, body, storedAt }: Stored, type: string): EventMessage | undefined => {
  const at = new Date(headers.get(headerNames.ceTime));
  try {
    return {
      id: headers.get(headerNames.ceId) || subject,
      type,
      timestamp: (Number.isNaN(at.getTime()) ? storedAt : at).toISOString(),
      data: JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(body)),
    };
  } catch {
    return undefined;
  }
};

/**
 * Reads events of a project from a sequence on: about a hundred, none at the end. Reading leaves nothing behind on the broker, so a
 * reader needs no right to make or remove consumers. Throws HeraldError bus-unavailable.
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

/** The sequence of a project's first event that the stream took at or after a time. Throws HeraldError bus-unavailable. */
export const firstEventSince = async (bus: Bus, projectId: ProjectId, since: Date): Promise<number | undefined> => {
  const query = { start_time: since.toISOString(), batch: 1, next_by_subj: subjectOf(projectId, undefined) };
  const [sequence] = await directRead(connectionOf(bus), stream, query, (stored) => stored.sequence);
  return sequence;
};

/** The first and the last sequence of all events that are kept; `first` is one more than `last` where none is. Throws HeraldError bus-unavailable. */
export const eventBounds = async (bus: Bus): Promise<{ readonly first: number; readonly last: number }> => {
  const { connected, jsm } = connectionOf(bus);
  if (!connected) throw notConnected();
  try {
    const { state } = await jsm.streams.info(stream);
    return { first: Math.max(1, state.first_seq), last: state.last_seq };
  } catch (error) {
    throw toBusError(error);
  }
};

/**
 * Calls back when an event of a project is published, maybe a moment before it can be read, and not at all for what is published while
 * the connection is unavailable: a hint to look again, beside looking now and then. Answers what ends it.
 */
export const subscribeToEvents = (bus: Bus, projectId: ProjectId, onEvent: () => void): (() => void) => {
  const subscription = connectionOf(bus).nc.subscribe(subjectOf(projectId, undefined), { callback: () => onEvent() });
  return () => subscription.unsubscribe();
};
