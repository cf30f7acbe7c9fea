import type { OwnQuietHours, QuietHours } from "@herald/contracts";
import { instantOf, localTime } from "./local-time.ts";

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

/** What quiet hours need to know of a device. `quiet`: `22:00-07:00`, those of its user. */
type Clock = { readonly zone?: string | undefined; readonly quiet?: string | undefined };

const ownHoursOf = (quiet: string): OwnQuietHours => {
  const [from = "", to = ""] = quiet.split("-");
  return { from, to };
};

/**
 * When the quiet hours end that hold for a device at `at`: those of the project or kind, and of its user. `skip`: they say that the device
 * gets nothing. Undefined: none hold. `zone`: of devices without one.
 */
export const quietEnd = (
  { hours, zone: usual }: { readonly hours?: QuietHours | undefined; readonly zone: string },
  { zone = usual, quiet }: Clock,
  at: Date,
): Date | "skip" | undefined => {
  if (hours?.mode === "skip" && quietUntil(hours, zone, at)) return "skip";
  return unionUntil([...(hours ? [hours] : []), ...(quiet === undefined ? [] : [ownHoursOf(quiet)])], zone, at);
};

/** Devices of large batches that wait share the full hours, because each time makes a child row. */
const fullHourMs = 3_600_000;
const fewDevices = 100;

/** The end of quiet hours for the devices of a batch: many of them share the full hours. */
export const sharedQuietEnd = (end: Date, devices: number): Date =>
  devices > fewDevices ? new Date(Math.ceil(end.getTime() / fullHourMs) * fullHourMs) : end;

/** Until when quiet hours delay a device, in a batch of `devices`. Undefined: it gets nothing, because the send expires before. */
export const delayedUntil = (
  end: Date | "skip",
  { expiresAt, devices }: { readonly expiresAt: Date; readonly devices: number },
): Date | undefined => {
  if (end === "skip") return undefined;
  const until = sharedQuietEnd(end, devices);
  return until < expiresAt ? until : undefined;
};
