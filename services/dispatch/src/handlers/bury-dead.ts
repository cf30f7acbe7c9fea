import { type DeadLetter, defineDeadLetterHandler } from "@herald/bus";
import {
  contractOf,
  DeliverBatchV1,
  DueV1,
  ExpandedV1,
  ExpandV1,
  type MessageContract,
  type NotificationId,
  SendV1,
} from "@herald/contracts";
import type { z } from "zod";
import type { CarryOut } from "../sending/carry-out.ts";
import type { Expand } from "../sending/expand.ts";
import type { Finisher } from "../sending/finisher.ts";
import type { Claim } from "../stores/delivery-document.ts";
import type { DeliveryStore } from "../stores/delivery-store.ts";
import type { NotificationStore } from "../stores/notification-store.ts";
import { claimOf } from "./deliver-batch.ts";

type Options = {
  notifications: NotificationStore;
  deliveries: DeliveryStore;
  carryOut: CarryOut;
  finisher: Finisher;
  expand: Expand;
  now: () => Date;
};

/**
 * A message of a notification's life was given up: its devices still get their final state, failed with `internal`.
 * What does not parse names no device, so it is left in the dead letters for a person.
 */
export const buryDead = (options: Options) => {
  const { notifications, deliveries, carryOut, finisher, expand, now } = options;

  /** Nothing is sent for it, but it is expanded, so that every device it addressed is counted. */
  const bury = async (projectId: SendV1["projectId"], id: NotificationId) => {
    await notifications.abandon(projectId, id, now());
    const document = await notifications.get(projectId, id);
    if (document && !document.final && !document.expanded) await expand(document);
  };

  const buries = [
    on(SendV1, async (send) => {
      await notifications.insert(send, now(), { abandonedAt: now() });
      await bury(send.projectId, send.notificationId);
    }),
    on(ExpandV1, ({ projectId, notificationId }) => notifications.expansionLost(projectId, notificationId, now())),
    on(ExpandedV1, async ({ projectId, notificationId, batches, devices, unmatched }) => {
      await notifications.expanded(projectId, notificationId, { batches, devices, unmatched });
      await finisher.check(projectId, notificationId);
    }),
    on(DeliverBatchV1, async (batch, message, signal) => {
      // A project that is deleted leaves batches of notifications that are gone.
      if (!(await notifications.get(batch.projectId, batch.notificationId))) return;
      const key = { projectId: batch.projectId, id: batch.batchId, batch, ...claimOfDead(message) };
      const run = await deliveries.seize(key, now());
      if (run) await carryOut.abandon(run, signal);
    }),
    on(DueV1, async ({ kind, projectId, id }, message, signal) => {
      if (kind === "notification") return bury(projectId, id as NotificationId);
      const run = await deliveries.seize({ projectId, id, ...claimOfDead(message) }, now());
      if (run) await carryOut.abandon(run, signal);
    }),
  ];

  return defineDeadLetterHandler({
    durable: "dispatch-bury", // renaming a durable replays its stream
    concurrency: 8, // dead letters are rare
    async handle({ data, signal }) {
      for (const attempt of buries) if (await attempt(data, signal)) return;
    },
  });
};

/** The claim that the dead message had on its row, where its letter says which it was. */
const claimOfDead = (message: DeadLetter["message"]): { claim?: Claim } => (message ? { claim: claimOf(message) } : {});

/** Handles a dead letter whose message was of one contract; false when it was not. */
const on =
  <Schema extends z.ZodType>(
    contract: MessageContract<Schema>,
    bury: (data: z.output<Schema>, message: DeadLetter["message"], signal: AbortSignal) => Promise<void>,
  ) =>
  async ({ subject, body, message }: DeadLetter, signal: AbortSignal): Promise<boolean> => {
    if (contractOf(subject)?.name !== contract.name) return false;
    const parsed = contract.schema.safeParse(body);
    if (parsed.success) await bury(parsed.data, message, signal);
    return true;
  };
