import type { NewNotification, NotificationChange } from "@herald/client";
import { knownValues } from "@herald/client/known-values";
import { option } from "../define.ts";

/** When to send, for a new notification and for one that waits. */
export type SendTime = {
  readonly at?: string;
  readonly timeZone?: string;
  readonly past?: NewNotification["past"];
};

export const sendTimeOptions = [
  option("--at <time>", "time to send it, such as 2030-01-31T09:00:00+01:00; without offset with --time-zone"),
  option("--time-zone <zone>", "whose local time --at is: device, or a zone such as Europe/Berlin"),
  option("--past <what>", "with --time-zone device, for clocks that have passed the time").choices(knownValues.past),
];

/** A time with an offset has no zone, so the one that the notification had is removed. */
export const changeOfTime = ({ at, timeZone, past }: SendTime): NotificationChange => {
  const isInstant = at !== undefined && timeZone === undefined && /(Z|[+-]\d\d:?\d\d)$/i.test(at);
  if (isInstant) return { send_at: at, time_zone: null, past: null };
  return { send_at: at, time_zone: timeZone, past };
};
