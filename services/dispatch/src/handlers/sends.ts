import { defineHandler, type MessageDelivery } from "@herald/bus";
import {
  DrainBacklogV1,
  ExpandedV1,
  type GroupedSend,
  JoinActivityV1,
  NotificationId,
  readGroup,
  SendGroupV1,
  SendOneV1,
  SendV1,
} from "@herald/contracts";
import { describeIssues, type FairGate, HeraldError } from "@herald/kit";
import type { Backlog } from "../delivery/backlog.ts";
import type { FailedSend } from "../delivery/begun-sends.ts";
import type { DeliveryDeps } from "../delivery/create-delivery.ts";
import { type DeliverSends, throwAny } from "../delivery/deliver-sends.ts";
import type { Deps } from "../deps.ts";
import { claimOf } from "../stores/delivery-document.ts";

/** Stores an accepted notification. Its expansion starts at its project's turn, or at its `send_at`. */
export const startNotification = ({
  gate,
  concurrency,
  ...deps
}: Pick<Deps, "notifications" | "now" | "outbox" | "recipients"> &
  Pick<DeliveryDeps, "cache" | "dueMessages" | "expandQueued" | "expansionSteps"> & {
    /** Limits how many notifications are started at a time, fairly by project. */
    gate: FairGate;
    /** Notifications in memory, which wait at the gate. High, so that many of one project do not delay those of others. */
    concurrency: number;
  }) => {
  const { notifications, recipients, cache, expandQueued, dueMessages, outbox, expansionSteps, now } = deps;
  const start = async (data: SendV1): Promise<void> => {
    const inserted = await notifications.insert(data, now(), await expansionSteps.planOf(data));
    // Others may be changed before they are sent.
    if (inserted?.document.step === "accepted") cache.put(inserted.document);
    // If it exists already, its message was redelivered, or it was cancelled before this message and is final.
    const document = inserted?.document ?? (await notifications.get(data.projectId, data.notificationId));
    if (!document || document.end || document.expanded) return;
    await recipients.insert(data, now());
    if (document.step === "scheduled") await dueMessages.schedule(document, document.nextAt);
    else if (document.step !== "approval") await expandQueued(document.projectId, inserted?.document);
    if (inserted) await outbox.publishNotification({ ...document, outbox: inserted.outbox });
    else await outbox.flushNotification(document);
  };
  return defineHandler({
    durable: "dispatch-start", // renaming a durable replays its stream
    message: SendV1,
    concurrency,
    async handle({ data }) {
      const leave = await gate.enter(data.projectId, 1);
      try {
        await start(data);
      } finally {
        leave();
      }
    },
  });
};

type CompleteDeps = Pick<DeliveryDeps, "cache" | "expandQueued" | "expansionSteps" | "finisher">;

/** Registry has partitioned every batch: after the last expansion, the end of the notification can be detected. */
export const completeExpansion = ({ cache, finisher, expandQueued, expansionSteps }: CompleteDeps) =>
  defineHandler({
    durable: "dispatch-complete-expansion", // renaming a durable replays its stream
    message: ExpandedV1,
    concurrency: 32, // short waits for the database
    async handle({ data, publishedAt: at }) {
      const { projectId, notificationId } = data;
      const begun = await expansionSteps.expanded(data, at);
      await expandQueued(projectId, begun?.document);
      // This process is sending batches. The handler that settles the last one checks for the end, and sees this update by then.
      if (!cache.sending(notificationId)) await finisher.check(projectId, notificationId);
    },
  });

/** The subject of one send of a group: it becomes a dead letter without the others. */
const subjectOfOne = (one: unknown, otherwise: string): string => {
  const { data = otherwise } = NotificationId.safeParse((one as Partial<GroupedSend> | null)?.notificationId);
  return SendOneV1.subject({ notificationId: data } as SendOneV1);
};

/** Delivers small sends, from audience to last event in this process. */
export const deliverSmallSends = (deliverSends: DeliverSends, concurrency: number) => {
  const deliver = deliveredAgain(deliverSends);
  return [
    defineHandler({
      durable: "dispatch-send-groups", // renaming a durable replays its stream
      message: SendGroupV1,
      concurrency,
      async handle(message) {
        const { sends, malformed } = readGroup(message.data);
        const failed = sends.length > 0 ? await deliver(sends, message) : [];
        for (const [index, { data, error }] of malformed.entries()) {
          const key = `malformed-${index}`;
          const subject = subjectOfOne(data, `${message.sequence}-${index}`);
          await message.deadLetter({ key, subject, data }, new HeraldError("schema", describeIssues(error).join("; ")));
        }
        const retried: FailedSend[] = [];
        for (const one of failed) {
          const { send, error } = one;
          const part = { key: send.notificationId, subject: SendOneV1.subject(send), data: send };
          if (!(await message.deadLetter(part, error))) retried.push(one);
        }
        throwAny(retried);
      },
    }),
    // Sends whose requests were repeated. If its group's message was handled before, the database has the send.
    defineHandler({
      durable: "dispatch-single-sends",
      message: SendOneV1,
      concurrency,
      handle: async (message) => throwAny(await deliver([message.data], message)),
    }),
  ];
};

/** Knows which messages this process tries again. */
const deliveredAgain = (deliverSends: DeliverSends) => {
  const tried = new WeakSet<object>();
  return (sends: readonly GroupedSend[], message: MessageDelivery<object>) => {
    const { data, signal, bytes, deliveryCount } = message;
    const again = deliveryCount > 1 || tried.has(data);
    tried.add(data);
    return deliverSends(sends, { claim: claimOf(message), signal, bytes, deliveryCount, again });
  };
};

/** Sends the state of an activity to a device whose token came late or changed, or to its channels. */
export const joinActivity = ({ activities, tendActivity }: Pick<DeliveryDeps, "activities" | "tendActivity">) =>
  defineHandler({
    durable: "dispatch-join-activities", // renaming a durable replays its stream
    message: JoinActivityV1,
    concurrency: 256, // waits for the broker, and for Apple
    handle: ({ data: { projectId, activityId: id, version, deviceId, tokenHash, at, sendAt }, signal }) =>
      deviceId !== undefined && tokenHash !== undefined && at !== undefined
        ? activities.join({ projectId, id }, { deviceId, tokenHash, at, sendAt })
        : tendActivity({ projectId, id }, version, signal),
  });

/** Projects whose backlogs one process drains at a time. Their sends pass a gate, so each project costs little. */
const maxProjects = 1_000;

/** Sends a project's backlog. The message is acked when the backlog is empty, so another process continues after a crash. */
export const drainBacklog = (backlog: Pick<Backlog, "drain">) =>
  defineHandler({
    durable: "dispatch-drain", // renaming a durable replays its stream
    message: DrainBacklogV1,
    concurrency: maxProjects,
    handle: ({ data, ...message }) => backlog.drain(data.projectId, message),
  });
