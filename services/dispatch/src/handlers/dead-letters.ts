import { type DeadLetter, defineDeadLetterHandler } from "@herald/bus";
import {
  contractOf,
  DeliverBatchV1,
  DueV1,
  ExpandedV1,
  ExpandV1,
  type MessageContract,
  type NotificationId,
  SendGroupV1,
  SendOneV1,
  SendV1,
} from "@herald/contracts";
import { z } from "zod";
import type { Finisher } from "../delivery/finish.ts";
import type { Pipeline } from "../delivery/pipeline.ts";
import { rootBatchId } from "../domain/batch-ids.ts";
import type { ExpandQueued } from "../jobs/expand-queued.ts";
import { type Claim, rootOf } from "../stores/delivery-document.ts";
import type { DeliveryStore } from "../stores/delivery-store.ts";
import type { ExpansionQueue } from "../stores/expansion-queue.ts";
import type { NotificationStore } from "../stores/notification-store.ts";
import type { SmallSendStore } from "../stores/small-send-store.ts";
import { claimOf } from "./deliver-batch.ts";

type Deps = {
  notifications: NotificationStore;
  sends: Pick<SmallSendStore, "moveToDeliveries">;
  deliveries: DeliveryStore;
  pipeline: Pipeline;
  finisher: Finisher;
  queue: Pick<ExpansionQueue, "add">;
  expandQueued: ExpandQueued;
  /** Publishes the send as a large one. Repeatable. */
  sendAsLarge: (send: SendV1) => Promise<void>;
  now: () => Date;
};

/**
 * A message about a notification was dead-lettered: its devices still get their final state, failed with `internal`.
 * What does not parse names no device, so it is left in the dead letters for a person.
 */
export const handleDeadLetters = (deps: Deps) => {
  const { notifications, sends, deliveries, pipeline, finisher, queue, expandQueued, sendAsLarge, now } = deps;

  /** Nothing is sent for it, but it is expanded, so that every device it addressed is counted. */
  const abandonAll = async (projectId: SendV1["projectId"], id: NotificationId) => {
    await notifications.abandon(projectId, id, now());
    await queue.add(projectId, id);
    await expandQueued(projectId);
  };

  /** What had begun ends; what had not, or had gone the other way, goes that way: it has a message, and dead letters, of its own there. */
  const endSend = async (send: SendV1, message: DeadLetter["message"], signal: AbortSignal) => {
    const { projectId, notificationId } = send;
    const document = await notifications.get(projectId, notificationId);
    if (!document?.final && !document?.expanded) return sendAsLarge(send);
    // What waits in a backlog has a message of its own there.
    if (document.final || document.queued) return;
    await sends.moveToDeliveries(projectId, notificationId);
    const empty = { projectId, notificationId, lane: "direct", platform: "ios", devices: [] } as const;
    for (let n = 0; n < (document.expanded?.batches ?? 0); n++) {
      const id = rootBatchId(notificationId, n);
      const claim = claimOfLetter(message);
      const run =
        (await deliveries.claim({ projectId, id, ...claim }, now())) ??
        // It never came to this row, so nothing was sent for it.
        (await deliveries.claim({ projectId, id, batch: { ...empty, batchId: id, devices: [] }, ...claim }, now()));
      if (run) await pipeline.abandon(run, signal);
    }
    await finisher.check(projectId, notificationId);
  };

  const handlers = [
    async ({ subject, body, message }: DeadLetter, signal: AbortSignal): Promise<boolean> => {
      if (contractOf(subject)?.name !== SendGroupV1.name) return false;
      // Each alone: one that does not parse takes no other with it, and stays in the letter for a person.
      const { data } = z.object({ sends: z.array(z.unknown()) }).safeParse(body);
      for (const one of data?.sends ?? []) {
        const send = SendV1.schema.safeParse(one);
        if (send.success) await endSend(send.data, message, signal);
      }
      return true;
    },
    on(SendOneV1, endSend),
    on(SendV1, async (send) => {
      await notifications.insert(send, now(), { abandonedAt: now() });
      await abandonAll(send.projectId, send.notificationId);
    }),
    on(ExpandV1, async ({ projectId, notificationId }) => {
      await notifications.expansionLost(projectId, notificationId, now());
      await expandQueued(projectId);
    }),
    on(ExpandedV1, async ({ projectId, notificationId, ...expanded }, message) => {
      const at = message?.publishedAt ?? now();
      await notifications.expanded(projectId, notificationId, { ...expanded, at }, now());
      await expandQueued(projectId);
      await finisher.check(projectId, notificationId);
    }),
    on(DeliverBatchV1, async (batch, message, signal) => {
      // A project that is deleted leaves batches of notifications that are gone.
      const document = await notifications.get(batch.projectId, batch.notificationId);
      if (!document) return;
      const { tags } = document;
      const key = { projectId: batch.projectId, id: batch.batchId, batch, tags, ...claimOfLetter(message) };
      const run = await deliveries.claim(key, now());
      if (run) await pipeline.abandon(run, signal);
      else await pipeline.resume(rootOf(batch));
    }),
    on(DueV1, async ({ kind, projectId, id }, message, signal) => {
      if (kind === "notification") return abandonAll(projectId, id as NotificationId);
      const run = await deliveries.claim({ projectId, id, ...claimOfLetter(message) }, now());
      if (run) await pipeline.abandon(run, signal);
    }),
  ];

  return defineDeadLetterHandler({
    durable: "dispatch-dead-letters", // renaming a durable replays its stream
    concurrency: 8, // dead letters are rare
    async handle({ data, signal }) {
      for (const attempt of handlers) if (await attempt(data, signal)) return;
    },
  });
};

/** The claim that the dead message had on its row, where its letter says which it was. */
const claimOfLetter = (message: DeadLetter["message"]): { claim?: Claim } =>
  message ? { claim: claimOf(message) } : {};

/** Handles a dead letter whose message was of one contract; false when it was not. */
const on =
  <Schema extends z.ZodType>(
    contract: MessageContract<Schema>,
    abandonAll: (data: z.output<Schema>, message: DeadLetter["message"], signal: AbortSignal) => Promise<void>,
  ) =>
  async ({ subject, body, message }: DeadLetter, signal: AbortSignal): Promise<boolean> => {
    if (contractOf(subject)?.name !== contract.name) return false;
    const parsed = contract.schema.safeParse(body);
    if (parsed.success) await abandonAll(parsed.data, message, signal);
    return true;
  };
