import { type Herald, HeraldError, type LineError, type NewNotification, type Recipients } from "@herald/client";
import type { Context } from "../context.ts";
import { formatNumber } from "../terminal/text.ts";
import { contentTypeOf, lineErrorWords, openFile, shownErrors } from "./upload-file.ts";

/** What Herald has of the recipients of a notification, and the first errors of their lines. */
export type Uploaded = Recipients & { readonly errors: readonly LineError[] };

type Parts = Pick<Context, "terminal" | "signal">;
type Calls = Pick<Herald, "notifications">;

/** The counts of the recipients of a notification, and the first lines that were refused or have no device. */
export const readUploaded = async ({ notifications }: Calls, id: string, found?: Recipients): Promise<Uploaded> => {
  const stored = found ?? (await notifications.recipients(id));
  const some = stored.refused + stored.unmatched > 0;
  const page = some && (await notifications.recipientErrors(id, { perPage: shownErrors }).page());
  return { ...stored, errors: page ? page.data : [] };
};

/** Uploads a file of recipients for a notification that was just sent, or whose upload broke. */
export const uploadRecipients = async (
  { terminal, signal }: Parts,
  herald: Calls,
  id: string,
  file: string,
): Promise<Uploaded> => {
  const blob = await openFile(file);
  terminal.progress(`Uploading ${file}…`);
  const stored = await herald.notifications.uploadRecipients(id, () => blob, {
    signal,
    contentType: contentTypeOf(file),
  });
  terminal.progress();
  return readUploaded(herald, id, stored);
};

/**
 * Reads a file of recipients as Herald would, without sending: the variables are those of a notification that is accepted for this, and
 * cancelled.
 */
export const rehearseRecipients = async (
  { terminal, signal }: Parts,
  { notifications }: Calls,
  notification: NewNotification,
  file: string,
): Promise<Uploaded> => {
  const blob = await openFile(file);
  const { id } = await notifications.send(notification);
  try {
    terminal.progress(`Reading ${file}…`);
    const read = await notifications.dryRunRecipients(id, blob, { signal, contentType: contentTypeOf(file) });
    return { ...read, errors: read.errors ?? [] };
  } finally {
    terminal.progress();
    // After Ctrl-C too. It would expire by itself: no file follows.
    await notifications.cancel(id, { signal: AbortSignal.timeout(10_000) }).catch((error: unknown) => {
      if (!(error instanceof HeraldError)) throw error;
      terminal.note(`${id} could not be cancelled. It sends nothing, and ends after 24 hours.`);
    });
  }
};

const counted = (count: number, what: string): string => `${formatNumber(count)} ${what}${count === 1 ? "" : "s"}`;

export const uploadWords = ({ recipients, processed, refused, duplicates, unmatched, errors }: Uploaded): string =>
  [
    `${counted(recipients, "recipient")}, ${counted(refused, "line")} refused, ${counted(duplicates, "duplicate")}, ${formatNumber(unmatched)} without a device.`,
    ...(processed < recipients
      ? [`The devices of ${counted(recipients - processed, "recipient")} are not looked up yet.`]
      : []),
    ...lineErrorWords(errors),
  ].join("\n");

export const rehearsalWords = ({ recipients, refused, duplicates, errors }: Uploaded): string =>
  [
    `${counted(recipients, "recipient")}, ${counted(refused, "line")} refused, ${counted(duplicates, "duplicate")}.`,
    ...lineErrorWords(errors),
    "Nothing was sent. Their devices are looked up when it is sent.",
  ].join("\n");
