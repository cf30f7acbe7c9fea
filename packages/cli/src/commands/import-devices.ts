import { setTimeout as sleep } from "node:timers/promises";
import type { Herald, Import } from "@herald/client";
import { knownValues } from "@herald/client/known-values";
import type { Command } from "commander";
import type { Context } from "../context.ts";
import { type Add, option } from "../define.ts";
import { UsageError } from "../failures.ts";
import { formatNumber } from "../terminal/text.ts";
import { contentTypeOf, lineErrorWords, openFile, shownErrors } from "./upload-file.ts";

const pollMs = 500;
const barWidth = 24;

const progressOf = ({ status, lines_stored, lines_processed }: Import): string => {
  if (status === "uploading")
    return `Uploading: ${formatNumber(lines_stored)} lines stored, ${formatNumber(lines_processed)} processed…`;
  const done = lines_stored === 0 ? 1 : lines_processed / lines_stored;
  const filled = Math.floor(done * barWidth);
  return `[${"#".repeat(filled)}${".".repeat(barWidth - filled)}] ${Math.floor(done * 100)} % of ${formatNumber(lines_stored)} lines`;
};

const lines = (count: number): string => `${formatNumber(count)} ${count === 1 ? "line" : "lines"}`;

/** The maximum number of printed fields of each kind; the API lists more. */
const shownFields = 20;

const listed = (title: string, fields: readonly string[]): string[] => {
  if (fields.length === 0) return [];
  const shown = fields.slice(0, shownFields);
  const more = fields.length - shown.length;
  return [title, ...shown.map((field) => `  ${field}`), ...(more > 0 ? [`  and ${formatNumber(more)} more`] : [])];
};

const words = (done: Import): string[] => {
  const { lines_with: given, unsupported, unused = [], renamed = [] } = done;
  const reasons = { unknown: "a device has nothing for it", invalid: "not valid" };
  return [
    [
      done.dry_run ? "Dry run: nothing was changed. The import would have" : "The import has",
      `created ${formatNumber(done.created)}, updated ${formatNumber(done.updated)}, left unchanged ${formatNumber(done.unchanged)} devices,`,
      `and refused ${lines(done.refused)}.`,
    ].join(" "),
    ...(unsupported > 0 ? [`Herald has no provider for the platforms of ${formatNumber(unsupported)} of them.`] : []),
    `Of the devices, ${formatNumber(given.user_id)} have a user, ${formatNumber(given.time_zone)} a time zone, ${formatNumber(given.locale)} a locale and ${formatNumber(given.last_seen_at)} a time when they were last seen.`,
    ...listed(
      "Fields of the file that devices did not get:",
      unused.map(
        (one) => `${one.field}: ${lines(one.lines)}, ${reasons[one.reason as keyof typeof reasons] ?? one.reason}`,
      ),
    ),
    ...listed(
      "Fields with another name, because of the characters in theirs:",
      renamed.map((one) => `${one.field}: ${one.name} in ${lines(one.lines)}`),
    ),
  ];
};

/** Shows progress until the import is completed. */
const watch = async (
  { terminal, signal }: Context,
  herald: Herald,
  id: string,
  uploading: () => boolean,
): Promise<Import> => {
  for (;;) {
    const found = await herald.imports.get(id);
    if (found.status === "completed") return found;
    if (!uploading() && found.status === "uploading") return found;
    terminal.progress(progressOf(found));
    await sleep(pollMs, undefined, { signal });
  }
};

/** The id of the import to upload to: resumed or new. */
const start = async (herald: Herald, { format, dryRun, resume }: Options): Promise<string> => {
  if (resume !== undefined) return resume;
  if (format === undefined) throw new UsageError(`--format must be one of ${knownValues.importFormat.join(", ")}.`);
  return (await herald.imports.create({ format, dry_run: dryRun === true })).id;
};

type Options = {
  readonly format?: (typeof knownValues.importFormat)[number];
  readonly dryRun?: boolean;
  readonly resume?: string;
};

export const addImport = (group: Command, add: Add) => {
  add<Options>(group, {
    usage: "import <file>",
    does: "Import devices from a file: NDJSON, CSV or lines, also as .gz",
    options: [
      option("--format <format>", "whose export it is").choices(knownValues.importFormat),
      option("--dry-run", "report what would happen, and change nothing"),
      option("--resume <id>", "continue an import whose upload broke"),
    ],
    examples: [
      ["device import users.csv.gz --format onesignal --dry-run", "what an export of OneSignal would create"],
      ["device import devices.ndjson --format herald", "devices of another Herald"],
    ],
    run: async (context, [file = ""], options) => {
      const { terminal, signal } = context;
      const herald = context.herald();
      const blob = await openFile(file);
      const id = await start(herald, options);
      context.onStop(`Continue with: herald device import ${file} --resume ${id}`);
      let isUploading = true;
      const uploading = herald.imports
        .upload(id, () => blob, { signal, contentType: contentTypeOf(file) })
        .finally(() => {
          isUploading = false;
        });
      // An upload error is reported below, after the final state of the import.
      uploading.catch(() => undefined);
      const done = await watch(context, herald, id, () => isUploading);
      await uploading;
      const finished = done.status === "completed" ? done : await watch(context, herald, id, () => true);
      terminal.progress();
      const page = finished.refused > 0 && (await herald.imports.errors(id, { perPage: shownErrors }).page());
      const errors = page ? page.data : [];
      await context.result({ ...finished, errors }, () =>
        [...words(finished), ...(errors.length > 0 ? ["Why lines were refused:"] : []), ...lineErrorWords(errors)].join(
          "\n",
        ),
      );
      return finished.refused > 0 ? 1 : 0;
    },
  });
};
