import { z } from "zod";
import { ImportId } from "../../ids.ts";
import { named, namedBody } from "../../named.ts";
import { afterLine } from "./lines.ts";

/** The code of an error of a line for whose platform Herald has no provider. */
export const unsupportedPlatform = "unsupported-platform";

/** The export formats that can be imported. */
export const ImportFormat = z
  .enum(["herald", "pinpoint", "sns", "onesignal", "firebase", "parse", "azure-nh", "pnta"])
  .meta({ id: "ImportFormat", description: "Whose export the file is" });
export type ImportFormat = z.infer<typeof ImportFormat>;

/**
 * Beside {@link lineLimits}. `unsupportedErrors`: of those that are kept, so many at most have the code `unsupported-platform`; `unfinished`:
 * imports of a project that began within `unfinishedMs` and are not processed to their end; `waitingChunks`: of a project in the stream;
 * `reportedFields` of an import and of each chunk: as many as columns, so that the numbers of a CSV file are exact; `fieldLength`: of a
 * reported name.
 */
export const importLimits = {
  chunkLines: 500,
  chunkBytes: 524_288,
  lines: 50_000_000,
  unsupportedErrors: 5_000,
  unfinished: 20,
  unfinishedMs: 86_400_000,
  waitingChunks: 16,
  reportedFields: 200,
  fieldLength: 100,
} as const;

/** Body of `POST /imports`. */
export const CreateImport = namedBody(
  "CreateImport",
  {
    import: z.strictObject({
      format: ImportFormat,
      dry_run: z.boolean().optional().meta({ description: "Reports what the import would do, and changes nothing" }),
    }),
  },
  { examples: [{ import: { format: "onesignal", dry_run: true } }] },
);

const count = z.number().int().min(0);

const field = z
  .string()
  .meta({ description: "As the file names it; of nested fields the path, such as `Demographic.Make`" });
const ofTheEnd = "At most 200, those of the most lines first. Absent in lists, and until the import is completed";

/** A field of an imported file from which devices got nothing. */
export const UnusedField = named(
  "UnusedField",
  {
    field,
    reason: z.enum(["unknown", "invalid"]).meta({
      description:
        "`unknown`: no field of a device corresponds to it. `invalid`: its value is not valid, such as a time zone that is not an IANA name, and was left out. More may come",
    }),
    lines: count,
  },
  { examples: [{ field: "Demographic.Make", reason: "unknown", lines: 1200 }] },
);

/** A field of an imported file that is stored under another name. */
export const RenamedField = named(
  "RenamedField",
  {
    field,
    name: z.string().meta({
      description: "The path in the device. A number at its end keeps apart what would otherwise have the same name",
    }),
    lines: count,
  },
  { examples: [{ field: "plan.name", name: "metadata.plan_name", lines: 1200 }] },
);

/** An import of devices from a file. The counts are numbers of lines. */
export const Import = named("Import", {
  id: ImportId,
  format: ImportFormat,
  dry_run: z.boolean(),
  status: z.enum(["uploading", "processing", "completed"]).meta({
    description:
      "`uploading`: lines are missing; if the upload broke, continue it after `lines_stored`. `processing`: Herald has the whole file",
  }),
  lines_stored: count.meta({ description: "Lines that Herald has received, with header and blank lines" }),
  lines_processed: count,
  created: count,
  updated: count,
  unchanged: count,
  refused: count,
  unsupported: count.meta({
    description:
      "Of the refused lines, those for which Herald has no provider: email, SMS, and platforms such as Huawei or Windows",
  }),
  lines_with: z
    .object({ user_id: count, time_zone: count, locale: count, last_seen_at: count })
    .meta({ description: "How many of the lines that are not refused gave the device this" }),
  unused: z
    .array(UnusedField)
    .optional()
    .meta({ description: `Fields with values that devices did not get. ${ofTheEnd}` }),
  renamed: z
    .array(RenamedField)
    .optional()
    .meta({
      description: `Fields that are stored under another name: a key has no \`.\` or \`$\`, and belongs to one field. ${ofTheEnd}`,
    }),
  errors_left_out: count.meta({ description: "Errors beyond the 10,000 that an import keeps" }),
  created_at: z.iso.datetime(),
});
export type Import = z.infer<typeof Import>;

/** Query of `PUT /imports/{id}/content`. */
export const ImportContentQuery = z.strictObject({ after_line: afterLine });
