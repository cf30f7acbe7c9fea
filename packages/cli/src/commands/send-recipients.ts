import type { Herald, RecipientError, Recipients } from "@herald/client";
import type { Context } from "../context.ts";
import { formatNumber } from "../terminal/text.ts";
import { contentTypeOf, openFile } from "./import-devices.ts";

/** The maximum number of printed errors; the API lists all stored errors. */
const shownErrors = 20;

/** What Herald has of the recipients of a notification, and the first errors of their lines. */
export type Uploaded = Recipients & { readonly errors: readonly RecipientError[] };

/** Uploads a file of recipients for a notification that was just sent, or whose upload broke. */
export const uploadRecipients = async (
  { terminal, signal }: Pick<Context, "terminal" | "signal">,
  { notifications }: Pick<Herald, "notifications">,
  id: string,
  file: string,
): Promise<Uploaded> => {
  const blob = await openFile(file);
  terminal.progress(`Uploading ${file}…`);
  const stored = await notifications.uploadRecipients(id, () => blob, { signal, contentType: contentTypeOf(file) });
  terminal.progress();
  const page = stored.refused > 0 && (await notifications.recipientErrors(id, { perPage: shownErrors }).page());
  return { ...stored, errors: page ? page.data : [] };
};

export const uploadWords = ({ recipients, refused, duplicates, errors }: Uploaded): string =>
  [
    `${formatNumber(recipients)} recipients, ${formatNumber(refused)} lines refused, ${formatNumber(duplicates)} duplicates.`,
    ...errors.map(
      ({ line, field, reason }) => `  line ${formatNumber(line)}: ${field === "" ? "" : `${field}: `}${reason}`,
    ),
  ].join("\n");
