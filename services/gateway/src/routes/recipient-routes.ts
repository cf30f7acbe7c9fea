import {
  type LineError,
  type NotificationId,
  type NotificationStatus,
  notificationRequests,
  type ProjectId,
  Recipients,
  RecipientsQuery,
  recipientLimits,
  recipientRequests,
} from "@herald/contracts";
import { HeraldError, positionMismatch } from "@herald/kit";
import { project, shareOwner } from "../auth/caller.ts";
import type { RequestDeps } from "../deps.ts";
import { forwardRoute } from "../http/forward-route.ts";
import { ok } from "../http/reply.ts";
import { dataOf, defineRoute } from "../http/route.ts";
import { createHashSet } from "../uploads/hash-set.ts";
import { isCsvUpload, uploadTypes } from "../uploads/read-upload.ts";
import { type RecipientChunk, recipientLines } from "../uploads/recipient-lines.ts";
import { storeUpload } from "../uploads/store-upload.ts";

const OneList = dataOf(Recipients);

const finalStatuses: ReadonlySet<NotificationStatus> = new Set(["completed", "cancelled", "expired"]);

const refuseFinal = async ({ sendRequest }: RequestDeps, projectId: ProjectId, notificationId: NotificationId) => {
  const { status } = await sendRequest(notificationRequests.get, { projectId, notificationId });
  if (finalStatuses.has(status))
    throw new HeraldError("notification-final", `the notification is ${status}: it takes no recipients`);
};

const uploadOf = async ({ sendRequest }: RequestDeps, projectId: ProjectId, notificationId: NotificationId) => {
  const { recipients, texts } = await sendRequest(recipientRequests.get, { projectId, notificationId, texts: true });
  if (texts) return { recipients, texts };
  throw new HeraldError("recipients-complete", "id: its recipients came with the request that sent it");
};

/** What a dry run answers of recipients that it does not send to. */
const unsent = { processed: 0, unmatched: 0, complete: false };

/** Reads a file without storing it. */
const createRehearsal = (recipients: Recipients) => {
  const errors: LineError[] = [];
  const report = { ...recipients, lines_stored: 0, recipients: 0, refused: 0, duplicates: 0, errors, ...unsent };
  return {
    report,
    read: (chunk: RecipientChunk): void => {
      report.lines_stored = chunk.lastLine;
      for (const count of ["recipients", "refused", "duplicates"] as const) report[count] += chunk[count];
      errors.push(...chunk.errors.slice(0, recipientLimits.dryRunErrors - errors.length));
    },
  };
};

export const recipientRoutes = [
  forwardRoute("getRecipients", "get /api/v1/notifications/{id}/recipients", {
    summary: "Read the progress of a notification's recipients",
    access: project("read"),
    forward: recipientRequests.get,
    schema: Recipients,
    show: ({ recipients }) => recipients,
    response: "The recipients",
    errors: ["notification-gone"],
  }),
  forwardRoute("listRecipientErrors", "get /api/v1/notifications/{id}/recipients/errors", {
    summary: "List the recipients of a notification that were refused or have no device, by line",
    description: "Keeps 10,000 errors of refused lines; `errors_left_out` of the recipients counts the others.",
    access: project("read"),
    forward: recipientRequests.errors,
    response: "A page of errors",
    errors: ["notification-gone"],
  }),
  defineRoute("uploadRecipients", "put /api/v1/notifications/{id}/recipients", {
    summary: "Upload the recipients of a notification",
    description:
      "For a notification that was sent with `recipients: { upload: <kind> }`. NDJSON, one `{ target, variables }` a line, or CSV with the column `target` and one for each variable, in UTF-8 by its Content-Type, also as gzip; up to 2,000,000 lines. Sending begins with the first two thousand lines, and Herald reads no faster than it sends. A refused line does not stop the others. After a broken connection, send the whole file again with `after_line` = `lines_stored`. Of duplicate targets, the first wins. With `dry_run=true` the lines are read and counted, the first errors are answered, and nothing is stored or sent.",
    access: project("send"),
    query: RecipientsQuery,
    upload: uploadTypes,
    responses: { 200: { description: "The whole file is stored", schema: OneList } },
    errors: [
      "notification-gone",
      "notification-final",
      "recipients-complete",
      "import-position-mismatch",
      "malformed-request",
      "quota-exceeded",
    ],
    handle: async (deps, { caller, params, query, message, recheck }) => {
      const { sendRequest, acquireUpload, hashMemory, limits } = deps;
      const { projectId } = caller;
      const one = { projectId, notificationId: params.id };
      const release = acquireUpload(shareOwner(caller));
      try {
        const { recipients, texts } = await uploadOf(deps, projectId, params.id);
        const isCsv = isCsvUpload(message);
        const isDry = query.dry_run === "true";
        const { after_line: afterLine = 0 } = query;
        if (!isDry) {
          if (recipients.complete)
            throw new HeraldError("recipients-complete", "id: the notification has its whole file");
          if (afterLine !== recipients.lines_stored) throw positionMismatch(recipients.lines_stored);
        }
        await refuseFinal(deps, projectId, params.id);
        if (isDry) await limits.countDryRun(projectId);
        else if (afterLine > 0) await limits.countUpload(params.id);
        const { kind } = recipients;
        const rehearsal = isDry ? createRehearsal(recipients) : undefined;
        const append = async (chunk: RecipientChunk) =>
          rehearsal ? rehearsal.read(chunk) : sendRequest(recipientRequests.append, { ...one, kind, ...chunk });
        const seen = createHashSet(hashMemory.roomOf(shareOwner(caller)));
        await storeUpload(deps, {
          ...{ projectId, message, isCsv, afterLine: isDry ? 0 : afterLine },
          check: () => recheck().then(() => refuseFinal(deps, projectId, params.id)),
          heldBytes: seen.bytes,
          kind: recipientLines({ kind, texts, seen, append }),
        }).finally(seen.release);
        return ok(rehearsal ? rehearsal.report : (await sendRequest(recipientRequests.get, one)).recipients);
      } finally {
        release();
      }
    },
  }),
];
