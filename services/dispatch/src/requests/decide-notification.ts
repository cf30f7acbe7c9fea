import { handleRequest, type RequestListener, sendRequest } from "@herald/bus";
import { audienceOfContent, audienceRequests, notificationRequests } from "@herald/contracts";
import { HeraldError } from "@herald/kit";
import type { DeliveryDeps } from "../delivery/create-delivery.ts";
import type { ShownNotification, StoredApproval } from "../stores/notification-document.ts";
import { type FindNotification, getStored, type RecentSums, readChanged, viewOf } from "./notifications.ts";

type DecideDeps = Pick<
  DeliveryDeps,
  "bus" | "expansionSteps" | "notifications" | "now" | "outbox" | "proposals" | "recipients"
> & { readonly find: FindNotification; readonly sumsOf: RecentSums };

/** An audience that is larger than what was proposed by more than this must be seen again. */
const maxGrowth = 1.2;

/** The proposal of a notification on which nobody has decided. @throws HeraldError `notification-final`, or `notification-started` */
const openProposal = ({ _id, step, status, end, stop, approval }: ShownNotification): StoredApproval => {
  if (end || stop)
    throw new HeraldError("notification-final", `the notification is ${status}: nothing is left to decide`);
  if (step === "approval" && approval) return approval;
  throw new HeraldError(
    "notification-started",
    approval?.by
      ? `${approval.by.name ?? approval.by.id} has approved ${_id}; cancel it to stop it`
      : `${_id} needs no approval; cancel it to stop it`,
  );
};

/** Decisions on proposed notifications: of several at once, one is made. */
export const handleDecisions = (deps: DecideDeps): RequestListener[] => {
  const { bus, notifications, recipients, proposals, sumsOf, now } = deps;

  /** The devices that it would reach now. @throws HeraldError `service-unavailable`, or `recipients-incomplete` */
  const audienceNow = async ({ _id, projectId, content, upload, approval }: ShownNotification): Promise<number> => {
    if (upload) {
      const latest = await recipients.latest(projectId, _id);
      if (latest?.last) return latest.recipients;
      throw new HeraldError("recipients-incomplete", "the file of its recipients is not complete");
    }
    if (content.recipients) return approval?.devices ?? 0;
    return (await sendRequest(bus, audienceRequests.size, { projectId, ...audienceOfContent(content) })).devices;
  };

  return [
    handleRequest(bus, notificationRequests.approve, async ({ projectId, notificationId, by, reason }) => {
      for (;;) {
        const document = await getStored(deps, projectId, notificationId);
        if (document.approval?.status === "approved" && !document.stop) return viewOf(document, sumsOf);
        const { sender, owner, devices: known } = openProposal(document);
        if (by.id === "root")
          throw new HeraldError("forbidden", "HERALD_ADMIN_TOKEN is no person; approve it as an operator");
        if (by.id === sender.id || by.id === owner)
          throw new HeraldError(
            "forbidden",
            "you sent it, or created the token that did: another person has to approve it",
          );
        const devices = await audienceNow(document);
        if (known === undefined || devices > known * maxGrowth) {
          const isNew = document.upload && known === undefined;
          if (!(await notifications.estimate(document, devices, isNew ? now() : undefined))) continue;
          await readChanged(deps, projectId, notificationId);
          const before = known === undefined ? "which was not known" : `and ${known} when it was proposed`;
          throw new HeraldError(
            "audience-grew",
            `it reaches about ${devices} devices now, ${before}; approve it again if that is right`,
          );
        }
        if (await proposals.release(document, { at: now(), by, reason })) break;
      }
      return viewOf(await readChanged(deps, projectId, notificationId), sumsOf);
    }),

    handleRequest(bus, notificationRequests.reject, async ({ projectId, notificationId, by, reason }) => {
      for (;;) {
        const document = await getStored(deps, projectId, notificationId);
        if (document.approval?.status === "rejected") return viewOf(document, sumsOf);
        openProposal(document);
        if (await proposals.reject(document, { at: now(), by, reason })) break;
      }
      return viewOf(await readChanged(deps, projectId, notificationId), sumsOf);
    }),
  ];
};
