import { z } from "zod";
import { isTimeZone, maxTimeZoneLength } from "../../time-zone.ts";

export const TimeZone = z
  .string()
  .max(maxTimeZoneLength)
  .refine(isTimeZone, "must be an IANA time zone such as Europe/Berlin");
