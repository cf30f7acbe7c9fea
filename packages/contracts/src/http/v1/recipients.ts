import { z } from "zod";
import { named } from "../../named.ts";
import { RecipientKind, recipientLimits } from "../../recipients.ts";
import { afterLine, LineError } from "./lines.ts";

const count = z.number().int().min(0);

/** How far the recipients of a notification are. The counts are numbers of lines. */
export const Recipients = named(
  "Recipients",
  {
    kind: RecipientKind,
    lines_stored: count.meta({ description: "Lines that Herald has read, with header and blank lines" }),
    recipients: count.meta({ description: "Lines that were accepted" }),
    processed: count.meta({ description: "Recipients whose devices were found" }),
    refused: count,
    duplicates: count.meta({ description: "Lines whose target an earlier line has" }),
    unmatched: count.meta({ description: "Processed recipients without an active device" }),
    errors_left_out: count.meta({ description: "Errors beyond the 10,000 that are kept" }),
    complete: z.boolean().meta({
      description:
        "Herald has all lines. False at the end: 24 hours passed without a line, or the notification was cancelled or expired",
    }),
    errors: z
      .array(LineError)
      .max(recipientLimits.dryRunErrors)
      .optional()
      .meta({ description: "Of `dry_run=true` alone: its first errors, by line" }),
  },
  {
    examples: [
      {
        kind: "user",
        lines_stored: 100_001,
        recipients: 99_990,
        processed: 50_000,
        refused: 8,
        duplicates: 2,
        unmatched: 12,
        errors_left_out: 0,
        complete: true,
      },
    ],
  },
);
export type Recipients = z.infer<typeof Recipients>;

/** Query of `PUT /notifications/{id}/recipients`. */
export const RecipientsQuery = z.strictObject({
  after_line: afterLine,
  dry_run: z
    .enum(["true", "false"])
    .optional()
    .meta({ description: "`true`: reads and counts the lines, and stores and sends nothing" }),
});
