import { instantOf, localTime, type OwnQuietHours } from "@herald/contracts";

const minuteMs = 60_000;
const dayMs = 86_400_000;

const minutesOf = (clock: string): number => Number(clock.slice(0, 2)) * 60 + Number(clock.slice(3, 5));

/** When quiet hours end that hold at `at`. Undefined: none hold then. */
export const quietUntil = ({ from, to }: OwnQuietHours, zone: string, at: Date): Date | undefined => {
  const local = localTime(at, zone);
  const [date = "", time = ""] = local.split("T");
  const clock = time.slice(0, from.length);
  const isOvernight = from > to;
  const isQuiet = isOvernight ? clock >= from || clock < to : clock >= from && clock < to;
  if (!isQuiet) return undefined;
  const nextDay = isOvernight && clock >= from;
  const day = nextDay ? new Date(Date.parse(`${date}T00:00:00Z`) + dayMs).toISOString().slice(0, date.length) : date;
  const end = instantOf(`${day}T${to}:00`, zone);
  // Clocks that are set back show the end twice: it is the second one for those who are behind the first.
  return end > at ? end : new Date(at.getTime() + (minutesOf(to) - minutesOf(clock)) * minuteMs);
};

/** More than two overlapping spans need. Together they may cover the whole day: then the delay ends after a day or two. */
const maxSpans = 4;

/** When all of several quiet hours have ended, from the one that holds at `at` on. Undefined: none holds then. */
export const unionUntil = (all: readonly OwnQuietHours[], zone: string, at: Date): Date | undefined => {
  let until = at;
  for (let round = 0; round < maxSpans; round++) {
    const ends = all.flatMap((hours) => quietUntil(hours, zone, until) ?? []);
    if (ends.length === 0) break;
    until = new Date(Math.max(...ends.map((end) => end.getTime())));
  }
  return until > at ? until : undefined;
};
