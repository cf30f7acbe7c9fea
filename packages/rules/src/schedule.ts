import {
  hasOffset,
  type LocalTime,
  lifeMsOf,
  type NotificationContent,
  ofDevice,
  type TimeOfSend,
  ttlMsOf,
} from "@herald/contracts";
import { instantOf } from "./local-time.ts";

/** The zones whose clocks show a time first and last. */
const [firstZone, lastZone] = ["Etc/GMT-14", "Etc/GMT+12"];

const dayMs = 86_400_000;
export const maxScheduleDays = 30;

/** When a notification begins, as its command says it. */
export type Schedule = {
  /** The beginning; absent: now. With `local`, the earliest. */
  readonly sendAt?: string;
  /** With `local`, the latest. */
  readonly expiresAt: string;
  readonly local?: LocalTime;
};

type Timing = TimeOfSend & Pick<NotificationContent, "ttl" | "rollout">;

/** `at`: when the notification is accepted or changed; `zone`: the project's default time zone. */
export const scheduleOf = (timing: Timing, { at, zone }: { readonly at: Date; readonly zone: string }): Schedule => {
  const { send_at: time, time_zone: named, past, ttl } = timing;
  if (time !== undefined && named === ofDevice) {
    const ttlMs = ttlMsOf(ttl);
    const latest = instantOf(time, lastZone).getTime() + (past === "tomorrow" ? dayMs : 0);
    return {
      sendAt: new Date(Math.max(instantOf(time, firstZone).getTime(), at.getTime())).toISOString(),
      expiresAt: new Date(Math.max(latest, at.getTime()) + ttlMs).toISOString(),
      local: { at: time, ...(past && { past }), zone, since: at.toISOString(), ttlMs },
    };
  }
  const start = time === undefined ? at : startOf(time, named);
  const isLater = start > at;
  const begins = isLater ? start : at;
  return {
    ...(isLater && { sendAt: start.toISOString() }),
    expiresAt: new Date(begins.getTime() + lifeMsOf(timing)).toISOString(),
  };
};

const startOf = (time: string, zone: string | undefined): Date =>
  zone === undefined || hasOffset(time) ? new Date(time) : instantOf(time, zone);

/** What is wrong with a time at the moment `at`, as messages that begin with the field's name. */
export const scheduleProblems = ({ send_at: time, time_zone: zone, past }: TimeOfSend, at: Date): string[] => {
  if (time === undefined) return [];
  const first = zone === ofDevice ? instantOf(time, firstZone) : startOf(time, zone);
  const problems: string[] = [];
  if (first.getTime() > at.getTime() + maxScheduleDays * dayMs)
    problems.push(`send_at: must be at most ${maxScheduleDays} days ahead`);
  if (zone === ofDevice && past === undefined && first <= at)
    problems.push(
      "past: is required, because `send_at` has passed in some time zones: `skip` their devices, or send `now` or `tomorrow`",
    );
  return problems;
};
