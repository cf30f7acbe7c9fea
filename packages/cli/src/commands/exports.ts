import { createWriteStream } from "node:fs";
import { pipeline } from "node:stream/promises";
import type { ExportedText, ExportFormat, ExportName } from "@herald/client";
import { knownValues } from "@herald/client/known-values";
import type { Command } from "commander";
import type { Context } from "../context.ts";
import { type Add, createdOptions, labelFilter, option, type TimeChoice } from "../define.ts";
import { UsageError } from "../failures.ts";
import { formatNumber, visible } from "../terminal/text.ts";

export type ExportChoice = { readonly format?: ExportFormat; readonly after?: string };

export const exportOptions = [
  option("--format <format>", "ndjson or csv").choices(["ndjson", "csv"]).default("ndjson"),
  option("--after <id>", "resume after the row with this id; adds to the file"),
];

/** Rows between two updates of the progress line. */
const progressEvery = 1_000;

const rowsWritten = (rows: number): string => (rows === 1 ? "1 row" : `${formatNumber(rows)} rows`);

/** Writes an export into a file, or to stdout. Ctrl-C says how to resume it. */
export const exportRows = async (
  { terminal, stdout, signal, onInterrupt, onStop, result }: Context,
  file: string | undefined,
  { after }: ExportChoice,
  lines: AsyncIterable<ExportedText>,
): Promise<void> => {
  let rows = 0;
  let last = after;
  let failure: unknown;
  const resume = () =>
    last === undefined ? "Nothing was written." : `Wrote ${rowsWritten(rows)}. \`--after ${last}\` resumes here.`;
  onInterrupt(resume());
  /** Ends without an error if the export fails, so that the file gets all rows that were read. */
  const texts = async function* () {
    try {
      for await (const { id, text } of lines) {
        yield file === undefined && terminal.isTerminal ? visible(text) : text;
        if (id === undefined) continue;
        last = id;
        rows++;
        onStop(resume());
        if (rows % progressEvery === 0) terminal.progress(`${formatNumber(rows)} rows…`);
      }
    } catch (error) {
      failure = error;
    }
  };
  if (file === undefined) await pipeline(texts, stdout, { end: false, signal });
  else
    await pipeline(texts, createWriteStream(file, { flags: after === undefined ? "w" : "a" })).catch((error: Error) => {
      throw new UsageError(`${file}: ${error.message}`);
    });
  terminal.progress();
  if (failure !== undefined) throw failure;
  if (file !== undefined) await result({ file, rows, last }, () => `Wrote ${rowsWritten(rows)} to ${file}.`);
};

const notificationOption = option("--notification <id>", "only of this notification");

export const notificationFilters = [
  option("--status <status>", "only notifications with this status").choices(knownValues.notificationStatus),
  option("--kind <kind>", "only of this kind"),
  option("--label <name=value>", "only with this label"),
  option("--push-type <type>", "only with this push type of Apple").choices(knownValues.pushType),
];
export const deliveryStatus = option("--status <status>", "only deliveries with this status").choices(
  knownValues.deliveryStatus,
);

const exports = {
  notifications: {
    what: "every notification with its counts",
    options: [...notificationFilters, ...createdOptions],
    example: "notification export --created-after 2030-01-01T00:00:00Z notifications.ndjson",
  },
  deliveries: {
    what: "every result of a notification for a device",
    options: [notificationOption, deliveryStatus, ...createdOptions],
    example: "delivery export --status failed --format csv failed.csv",
  },
  opens: {
    what: "every open: which device opened which notification, and when",
    options: [notificationOption],
    example: "open export --notification ntf_… > opens.ndjson",
  },
  receipts: {
    what: "every receipt and dismissal: which notification arrived on which device, and when",
    options: [notificationOption],
    example: "receipt export --notification ntf_… > receipts.ndjson",
  },
} as const;

type Filters = { status?: string; notification?: string; kind?: string; label?: string };

export const addExport = (group: Command, add: Add, name: Exclude<ExportName, "devices">) => {
  const { what, options, example } = exports[name];
  add<ExportChoice & TimeChoice & Filters>(group, {
    usage: "export [file]",
    does: `Write ${what} to a file or to stdout; needs a token with the scope export`,
    options: [...exportOptions, ...options],
    examples: [[example, `${name} as a file`]],
    run: (context, [file], { format = "ndjson", label, ...rest }) => {
      const filters = { ...rest, label: label && labelFilter(label), signal: context.signal };
      return exportRows(context, file, rest, context.herald().exports.lines(name, format, filters));
    },
  });
};
