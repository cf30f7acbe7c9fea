import { handleRequest, type RequestListener } from "@herald/bus";
import {
  lineLimits,
  type NotificationId,
  type ProjectId,
  readRecipientLines,
  recipientLimits,
  recipientRequests,
  targetOfRecipient,
} from "@herald/contracts";
import { HeraldError, notFound, positionMismatch } from "@herald/kit";
import type { DeliveryDeps } from "../delivery/create-delivery.ts";
import { requireRunning } from "../project-rules.ts";
import type { NotificationState } from "../stores/notification-document.ts";
import { errorsOfSmall } from "../stores/recipient-store.ts";
import type { FindNotification } from "./notifications.ts";

type RecipientDeps = Pick<DeliveryDeps, "bus" | "notifications" | "now" | "proposals" | "recipients" | "rules"> & {
  readonly find: FindNotification;
};

/** Requests about the recipients of notifications: registry expands them page after page, and the gateway uploads and shows them. */
export const handleRecipientRequests = (deps: RecipientDeps): RequestListener[] => {
  const { bus, notifications, proposals, recipients, rules, find, now } = deps;
  /** Whether no more lines are awaited: the notification was stopped or has expired, or its sender is silent. */
  const isOver = async ({ projectId, _id, upload, stop, expiresAt, acceptedAt, sendAt }: NotificationState) => {
    if (stop || now() >= expiresAt) return true;
    const latest = await recipients.latest(projectId, _id);
    const since = latest?.at ?? sendAt ?? acceptedAt;
    return now().getTime() - since.getTime() > (upload ? recipientLimits.uploadMs : recipientLimits.inlineMs);
  };

  const existing = async (projectId: ProjectId, id: NotificationId) => {
    const found = await find(projectId, id);
    const { recipients: listed } = "send" in found ? found.send.content : found.document.content;
    if (listed === undefined) throw notFound("notification-not-found", "id", "it has targets, and no recipients");
    const { send, document } = { send: undefined, document: undefined, ...found };
    return { ...listed, send, document };
  };

  return [
    handleRequest(bus, recipientRequests.read, async ({ projectId, notificationId, chunk }) => {
      const state = await notifications.getState(projectId, notificationId);
      if (!state || state.end) return { state: "ended" as const };
      let found = await recipients.read(projectId, notificationId, chunk);
      if (!found && (await isOver(state))) {
        await recipients.close(projectId, notificationId, chunk, now());
        found = await recipients.read(projectId, notificationId, chunk);
      }
      return found ? { state: "stored" as const, ...found } : { state: "waiting" as const };
    }),

    handleRequest(bus, recipientRequests.record, async ({ projectId, notificationId, chunk, unmatched }) => {
      await recipients.record(projectId, notificationId, chunk, unmatched);
      await notifications.pagesExpanded(projectId, notificationId, chunk + 1);
      return {};
    }),

    handleRequest(bus, recipientRequests.countUploads, async ({ projectId, limit }) => ({
      uploads: await notifications.countUploads(projectId, limit),
    })),

    handleRequest(bus, recipientRequests.get, async ({ projectId, notificationId, texts: wantsTexts }) => {
      const { kind, upload, send, document } = await existing(projectId, notificationId);
      // A small send is not expanded page after page: its list is one chunk, which is not stored.
      const list = document?.expanded?.list;
      const { last, ...counted } = list
        ? {
            last: {
              ...list,
              recipients: list.lines,
              refused: 0,
              duplicates: 0,
              errorsBefore: 0,
              last: true,
              closed: false,
            },
            ...{ processed: list.lines, unmatched: list.unmatched.length },
          }
        : await recipients.progress(projectId, notificationId, document?.pagesExpanded ?? 0);
      const personal =
        upload && wantsTexts
          ? (send?.personal ?? (await notifications.getTexts(projectId, notificationId)))
          : undefined;
      return {
        recipients: {
          kind,
          lines_stored: last?.lastLine ?? 0,
          recipients: last?.recipients ?? 0,
          ...counted,
          refused: last?.refused ?? 0,
          duplicates: last?.duplicates ?? 0,
          errors_left_out: Math.max(0, (last?.errorsBefore ?? 0) - lineLimits.errors),
          complete: last?.last === true && last.closed !== true,
        },
        ...(personal && { texts: { values: personal.values, declared: personal.declared } }),
      };
    }),

    handleRequest(bus, recipientRequests.errors, async ({ projectId, notificationId, page }, { signal }) => {
      const { document } = await existing(projectId, notificationId);
      const list = document?.expanded?.list;
      if (list) return errorsOfSmall(list.unmatched, page);
      const pages = document?.pagesExpanded ?? 0;
      return recipients.errors({ projectId, notificationId }, page, { pages, signal });
    }),

    handleRequest(bus, recipientRequests.append, async (chunk) => {
      const { projectId, notificationId, firstLine, kind } = chunk;
      const { upload, kind: own, document } = await existing(projectId, notificationId);
      if (!upload || own !== kind)
        throw new HeraldError("recipients-complete", "id: its recipients came with the request that sent it");
      if (!document) throw new HeraldError("queue-full", "the notification is not stored yet");
      if (document.end || document.stop || now() >= document.expiresAt)
        throw new HeraldError("notification-final", `the notification is ${document.status}: it takes no recipients`);
      await requireRunning(rules, projectId);
      const before = await recipients.latest(projectId, notificationId);
      if (before?.last) throw new HeraldError("recipients-complete", "id: the notification has its whole file");
      const stored = before?.lastLine ?? 0;
      if (firstLine !== stored + 1) throw positionMismatch(stored);
      const waiting = (before === undefined ? 0 : before.chunk + 1) - (document.pagesExpanded ?? 0);
      const isProposed = document.step === "approval";
      if (waiting >= recipientLimits.waitingChunks && !isProposed)
        throw new HeraldError("queue-full", "as many recipients wait as one notification may have waiting");
      const [sole, more] = chunk.last && before === undefined ? readRecipientLines(chunk.lines) : [];
      // Before the chunk: after a crash between the two, no repeat of the upload would add its person.
      if (sole && !more) await notifications.addPerson(projectId, notificationId, targetOfRecipient(kind, sole));
      if (!(await recipients.append(chunk, before, now()))) throw positionMismatch(chunk.lastLine);
      if (isProposed && chunk.last) await proposals.uploaded(document, (before?.recipients ?? 0) + chunk.recipients);
      return {};
    }),
  ];
};
