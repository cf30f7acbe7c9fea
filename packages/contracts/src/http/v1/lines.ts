import { z } from "zod";
import { named } from "../../named.ts";

/**
 * Limits of every uploaded file of lines. `bytes`: per line; `columns`: of CSV, and elements of a line of XML; `values`: per line of JSON;
 * `junkBytes`: of blank and too long lines per upload; `errors`: that are kept for a file.
 */
export const lineLimits = {
  bytes: 65_536,
  columns: 200,
  values: 2_000,
  junkBytes: 64 * 1_048_576,
  errors: 10_000,
} as const;

/** One problem of a line of a file: it was refused, or its recipient has no device. */
export const LineError = named(
  "LineError",
  {
    line: z
      .number()
      .int()
      .min(1)
      .meta({ description: "Counted from 1. In CSV a line is a row, and the header is row 1" }),
    field: z.string().meta({ description: "Of the line's device or recipient; empty: the whole line" }),
    reason: z.string(),
    code: z.string(),
  },
  { examples: [{ line: 7, field: "token", reason: "must be an APNs device token", code: "invalid-value" }] },
);
export type LineError = z.infer<typeof LineError>;

/** Query parameter: where an upload continues. */
export const afterLine = z
  .string()
  .regex(/^[0-9]{1,9}$/, "must be a whole number")
  .transform(Number)
  .optional()
  .meta({
    description:
      "Continues a broken upload: the `lines_stored` that Herald reports. Send the whole file; these lines are skipped",
  });
