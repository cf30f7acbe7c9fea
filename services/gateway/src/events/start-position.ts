import { type Bus, eventBounds, firstEventSince } from "@herald/bus";
import type { ProjectId } from "@herald/contracts";
import { HeraldError } from "@herald/kit";

export type Start = { readonly since?: string | undefined; readonly lastEventId?: string | undefined };

const keptMs = 30 * 86_400_000;
/** Sequences of the stream: what fits a number exactly. */
const sequence = /^\d{1,15}$/;

const invalid = (message: string) => new HeraldError("validation-failed", message);

/** The position itself, where all that came after it is still there. Throws position-gone. */
export const resumeBehind = (position: number, { first, last }: { first: number; last: number }): number => {
  if (position + 1 >= first && position <= last) return position;
  const why =
    position > last
      ? "it was not given out here; the stream of events was made anew"
      : "events that came after it are not kept any more";
  throw new HeraldError(
    "position-gone",
    `Last-Event-ID: ${why}. Begin again without it: with \`since\` for what is kept, or with neither for what comes`,
  );
};

/**
 * Behind which sequence a stream of events begins: behind the one that its reader saw last, at a time, or now. Throws position-gone
 * where events in between are not kept any more, validation-failed, or bus-unavailable.
 */
export const startPosition = async (
  bus: Bus,
  projectId: ProjectId,
  { since, lastEventId }: Start,
  now: Date,
): Promise<number> => {
  if (lastEventId !== undefined && !sequence.test(lastEventId))
    throw invalid("Last-Event-ID: must be the `id` of the last event that was read from here");
  const from = since === undefined ? undefined : new Date(since);
  if (from !== undefined && from > now) throw invalid("since: must not be in the future");
  if (from !== undefined && now.getTime() - from.getTime() > keptMs)
    throw invalid("since: must be at most 30 days ago; events are not kept for longer");

  const bounds = await eventBounds(bus);
  if (lastEventId !== undefined) return resumeBehind(Number(lastEventId), bounds);
  if (from === undefined) return bounds.last;
  const begin = await firstEventSince(bus, projectId, from);
  return begin === undefined ? bounds.last : begin - 1;
};
