import { handleRequest, type RequestListener } from "@herald/bus";
import {
  escalationProblems,
  knownZone,
  minPerMinute,
  type NotificationContent,
  notificationRequests,
  type SendV1,
  timeProblems,
} from "@herald/contracts";
import { HeraldError } from "@herald/kit";
import { scheduleOf, scheduleProblems } from "@herald/rules";
import type { z } from "zod";
import type { DeliveryDeps } from "../delivery/create-delivery.ts";
import type { NotificationState, ShownNotification } from "../stores/notification-document.ts";
import { slowedDown } from "../stores/notification-steps.ts";
import {
  type FindNotification,
  getStored,
  notificationView,
  type RecentSums,
  readChanged,
  viewOf,
} from "./notifications.ts";

type Change = z.output<typeof notificationRequests.change.request>["change"];

/** Null removes a field. */
const changed = (content: NotificationContent, change: Change): NotificationContent => {
  const fields = Object.entries({ ...content, ...change }).filter(([, value]) => value !== null);
  return Object.fromEntries(fields) as NotificationContent;
};

/** The time of a notification after a change. @throws HeraldError `validation-failed` */
const timeAfter = (content: NotificationContent, at: Date, zone: string | undefined) => {
  const wrong = [...timeProblems(content), ...escalationProblems(content)];
  const problems = [
    ...wrong.map(({ path, message }) => `${path.join(".")}: ${message}`),
    ...(wrong.length > 0 ? [] : scheduleProblems(content, at)),
  ];
  if (problems.length > 0)
    throw new HeraldError(
      "validation-failed",
      problems.map((problem) => `notification.${problem}`),
    );
  return scheduleOf(content, { at, zone: knownZone(zone) });
};

/** @throws HeraldError `notification-final`, `notification-proposed`, or `notification-started` */
const requireWaiting = ({ _id, step, status, end, expanded }: NotificationState): void => {
  if (end) throw new HeraldError("notification-final", `the notification is ${status}: nothing is left to change`);
  if (step === "approval")
    throw new HeraldError("notification-proposed", `${_id} waits for approval as it is; cancel it and send another`);
  if (step !== "scheduled" || expanded)
    throw new HeraldError("notification-started", `${_id} is being sent; cancel the rest and send another`);
};

/** @throws HeraldError `notification-started` for a send without a time */
const requireTime = ({ notificationId, sendAt }: SendV1): void => {
  if (sendAt === undefined)
    throw new HeraldError("notification-started", `${notificationId} is being sent; cancel it and send another`);
};

/** A rollout at a lower speed. @throws HeraldError `notification-final`, or `validation-failed` */
const slower = (document: ShownNotification, perMinute: number) => {
  const { content, expansions, status, step, end, stop } = document;
  if (step === "approval") requireWaiting(document);
  if (end || stop)
    throw new HeraldError("notification-final", `the notification is ${status}: nothing is left to slow down`);
  const { rollout } = expansions ?? {};
  if (!expansions || rollout?.perMinute === undefined)
    throw new HeraldError("validation-failed", "notification.rollout: it has no speed that could be lowered");
  const [min, max] = [minPerMinute(rollout.audience), rollout.perMinute];
  if (perMinute < min || perMinute > max)
    throw new HeraldError(
      "validation-failed",
      `notification.rollout.per_minute: must be from ${min} to ${max}: it may be lowered`,
    );
  return {
    content: { ...content, rollout: { ...content.rollout, per_minute: perMinute } },
    expansions: { ...expansions, rollout: { ...rollout, perMinute } },
    known: expansions,
  };
};

type ChangeDeps = Pick<
  DeliveryDeps,
  "bus" | "dueMessages" | "notifications" | "expansionSteps" | "now" | "outbox" | "recipients"
> & {
  readonly find: FindNotification;
  readonly sumsOf: RecentSums;
};

/** Changes when a notification is sent, until it begins: of a change and the beginning, one wins. */
export const handleChangeRequests = (deps: ChangeDeps): RequestListener[] => [
  handleRequest(deps.bus, notificationRequests.change, async ({ projectId, notificationId, change, zone }) => {
    const { notifications, expansionSteps, dueMessages, sumsOf, now } = deps;
    for (;;) {
      const document = await getStored(deps, projectId, notificationId, change.rollout ? undefined : requireTime);
      const at = now();
      if (change.rollout) {
        const { content, expansions, known } = slower(document, change.rollout.per_minute);
        const transition = slowedDown(content, change.rollout.per_minute, known);
        if (await notifications.advance(projectId, notificationId, transition))
          return viewOf({ ...document, content, expansions }, sumsOf);
        continue;
      }
      requireWaiting(document);
      const content = changed(document.content, change);
      const { sendAt, expiresAt, local } = timeAfter(content, at, zone);
      const send = {
        projectId,
        content,
        acceptedAt: at.toISOString(),
        ...(sendAt && { sendAt }),
        ...(local && { local }),
        notificationId,
      };
      const expansions = await expansionSteps.planOf(send);
      const after = { content, expiresAt: new Date(expiresAt), expansions };
      const written = await notifications.reschedule(document, after, at);
      // It began, ended or was changed since it was read.
      if (!written) continue;
      if (written.nextAt > now()) await dueMessages.schedule(document, written.nextAt);
      else await dueMessages.publish(document, written.nextAt);
      return notificationView(await readChanged(deps, projectId, notificationId));
    }
  }),
];
