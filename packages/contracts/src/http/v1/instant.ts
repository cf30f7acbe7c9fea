import { z } from "zod";

/** A time in a query. A `+` of an offset must be sent as `%2B`. */
export const Instant = z.iso.datetime({
  offset: true,
  error: "must be an RFC 3339 time with offset, such as 2030-01-31T09:00:00Z",
});
