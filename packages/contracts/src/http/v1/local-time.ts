import { z } from "zod";
import { named, type PathProblem } from "../../named.ts";
import { canonicalZone, isTimeZone, maxTimeZoneLength } from "../../time-zone.ts";
import { maxTtlSeconds } from "../../ttl.ts";

export const TimeZone = z
  .string()
  .max(maxTimeZoneLength)
  .refine(isTimeZone, "must be an IANA time zone such as Europe/Berlin");

/** The time zone of each device. */
export const ofDevice = "device";

export const Past = z.enum(["skip", "now", "tomorrow"]);
export type Past = z.infer<typeof Past>;

export const Ttl = z
  .number()
  .int()
  .min(0)
  .max(maxTtlSeconds, `must be at most ${maxTtlSeconds} seconds (28 days)`)
  .meta({
    description:
      "How long the notification is worth delivering, in seconds from acceptance, `send_at` or the beginning of its wave; at most 28 days. Devices that are not reached by then count as `expired`. Providers keep it for devices that are offline: `apns-expiration`, FCM's `ttl`, Web Push's `TTL`",
    examples: [86_400],
  });

/** When a notification is sent. */
export const timeFields = {
  send_at: z.iso
    .datetime({
      offset: true,
      local: true,
      error:
        "must be an RFC 3339 time with offset, such as 2030-01-31T09:00:00+01:00, or one without it beside `time_zone`",
    })
    .optional()
    .meta({
      description:
        "When to send it, at most 30 days ahead: a time with offset, or without one beside `time_zone`. Absent or past: now. Where clocks skip a local time, the first instant after the gap; where they show it twice, the first",
      examples: ["2030-01-31T09:00:00+01:00"],
    }),
  time_zone: z
    .string()
    .refine((zone) => zone === ofDevice || isTimeZone(zone), {
      error: "must be an IANA time zone such as Europe/Berlin, or `device`: the time zone of each device",
    })
    .optional()
    .meta({
      description:
        "Whose local time `send_at` is: an IANA time zone, or `device`, the zone of each device. Then it is sent in waves, one for each instant at which clocks of its devices show `send_at`, to the devices that are registered when the wave begins. A device that changes its zone meanwhile may get it twice (with the same collapse id) or not at all. A device without a zone has its project's `default_time_zone`",
      examples: ["device"],
    }),
  past: Past.optional().meta({
    description:
      'With `time_zone: "device"`, what happens to devices whose clocks have passed `send_at` already: `skip` them with the reason `past-local-time`, send `now`, or `tomorrow` at the same local time. Required once `send_at` has passed in some time zone',
    examples: ["tomorrow"],
  }),
};

const timeOfSend = z.object(timeFields);
export type TimeOfSend = z.infer<typeof timeOfSend>;

/** Whether it is a time at all: what is wrong with its form is said once. */
const isTime = (time: string | undefined): time is string =>
  time !== undefined && timeFields.send_at.safeParse(time).success;

/** Whether a time names its offset from UTC. */
export const hasOffset = (time: string): boolean => /(Z|[+-]\d{2}:?\d{2})$/i.test(time);

/** The fields of a time that do not fit together. */
export const timeProblems = ({
  send_at: sendAt,
  time_zone: zone,
  past,
  recipients,
}: TimeOfSend & { readonly recipients?: unknown }): PathProblem[] => {
  const problem = (field: string, message: string) => ({ path: [field], message });
  const problems: PathProblem[] = [];
  // What is no time at all has a problem of its own.
  if (sendAt !== undefined && !/^\d{4}-\d\d-\d\dT/.test(sendAt)) return problems;
  if (zone !== undefined && sendAt === undefined) problems.push(problem("time_zone", "needs `send_at`"));
  if (sendAt !== undefined && zone !== undefined && hasOffset(sendAt))
    problems.push(problem("send_at", "has an offset, so `time_zone` cannot be set; leave one of both out"));
  if (isTime(sendAt) && zone === undefined && !hasOffset(sendAt))
    problems.push(problem("send_at", "has no offset; add one, such as +01:00, or set `time_zone`"));
  if (past !== undefined && zone !== ofDevice) problems.push(problem("past", 'needs `time_zone: "device"`'));
  if (zone === ofDevice && recipients !== undefined)
    problems.push(problem("time_zone", "cannot be `device` beside `recipients`"));
  return problems;
};

/** Local time of each device, as dispatch plans it. */
export const LocalTime = z.object({
  /** Such as `2030-03-31T09:00:00`. */
  at: z.string(),
  past: Past.optional(),
  /** The time zone of devices without one. */
  zone: z.string(),
  /** Clocks that show a later time than `at` now have passed it. */
  since: z.iso.datetime(),
  /** How long a push is worth delivering, from the beginning of its wave. */
  ttlMs: z.number().int(),
});
export type LocalTime = z.infer<typeof LocalTime>;

/** The canonical name of a stored zone; one that this Node does not know counts as UTC. */
export const knownZone = (zone: string | undefined): string => canonicalZone(zone ?? "UTC") ?? "UTC";

export const WaveStatus = z.enum(["scheduled", "sending", "sent", "skipped"]).meta({
  id: "WaveStatus",
  description:
    "`sent`: all its devices are addressed; their results may follow. `skipped`: its devices get nothing, because their clocks had passed the time",
});

/** A wave of a notification: the devices whose clocks show its local time at one instant. */
export const Wave = named(
  "Wave",
  {
    at: z.iso.datetime().meta({ description: "When it begins" }),
    status: WaveStatus,
    time_zones: z.array(z.string()).meta({
      description: "The time zones whose clocks then show the local time; `none`: devices without a time zone",
      examples: [["Europe/Berlin", "none"]],
    }),
    devices: z.number().int().min(0).optional().meta({ description: "Absent until it has been addressed" }),
  },
  { examples: [{ at: "2030-01-31T08:00:00.000Z", status: "sent", time_zones: ["Europe/Berlin"], devices: 420 }] },
);
export type Wave = z.infer<typeof Wave>;

/** A wave as a dry run sees it. */
export const PlannedWave = named(
  "PlannedWave",
  { at: z.iso.datetime(), devices: z.number().int().min(0) },
  { examples: [{ at: "2030-01-31T08:00:00.000Z", devices: 420 }] },
);
