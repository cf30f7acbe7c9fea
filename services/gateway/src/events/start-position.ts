import { type Bus, eventBounds, firstEventSince } from "@herald/bus";
import type { ProjectId } from "@herald/contracts";
import { HeraldError } from "@herald/kit";

export type Start = { readonly since?: string | undefined; readonly lastEventId?: string | undefined };

const keptMs = 30 * 86_400_000;
/** A sequence of the stream: at most 15 digits, which a number holds exactly. */
const sequence = /^\d{1,15}$/;

const invalid = (message: string) => new HeraldError("validation-failed", message);

/** Returns the position if all events after it are still stored. Throws position-gone. */
export const resumeAfter = (position: number, { first, last }: { first: number; last: number }): number => {
  if (position + 1 >= first && position <= last) return position;
  const why =
    position > last
      ? "this position does not exist; the event stream was recreated"
      : "events after it are no longer stored";
  throw new HeraldError(
    "position-gone",
    `Last-Event-ID: ${why}. Start again without it: with \`since\` to read stored events, or without to read new ones`,
  );
};

/**
 * The sequence after which an event stream begins: the last event that the client saw, a time, or now. Throws position-gone when
 * events in between are no longer stored, validation-failed, or bus-unavailable.
 */
export const startPosition = async (
  bus: Bus,
  projectId: ProjectId,
  { since, lastEventId }: Start,
  now: Date,
): Promise<number> => {
  if (lastEventId !== undefined && !sequence.test(lastEventId))
    throw invalid("Last-Event-ID: must be the `id` of the last event that you received");
  const from = since === undefined ? undefined : new Date(since);
  if (from !== undefined && from > now) throw invalid("since: must not be in the future");
  if (from !== undefined && now.getTime() - from.getTime() > keptMs)
    throw invalid("since: must be at most 30 days ago; Herald stores events for 30 days");

  const bounds = await eventBounds(bus);
  if (lastEventId !== undefined) return resumeAfter(Number(lastEventId), bounds);
  if (from === undefined) return bounds.last;
  const begin = await firstEventSince(bus, projectId, from);
  return begin === undefined ? bounds.last : begin - 1;
};
