import { type Delivery, defineHandler } from "@herald/bus";
import {
  DeliverBatchV1,
  DueV1,
  ExpandedV1,
  ExpandV1,
  headerNames,
  type MessageContract,
  type NotificationId,
  SendV1,
} from "@herald/contracts";
import { z } from "zod";
import type { CarryOut } from "../sending/carry-out.ts";
import type { Expand } from "../sending/expand.ts";
import type { Finisher } from "../sending/finisher.ts";
import type { DeliveryStore } from "../stores/delivery-store.ts";
import type { NotificationStore } from "../stores/notification-store.ts";
import { claimOf } from "./deliver-batch.ts";

/** A dead letter's body is the message that died, so it may be anything. */
const DeadLetter: MessageContract = {
  name: "DeadLetter",
  pattern: "push.dlq.v1.:durable",
  filter: "push.dlq.v1.*",
  schema: z.unknown(),
  subject: () => {
    throw new TypeError("dead letters are published by the bus");
  },
};

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
    on(DeliverBatchV1, async (batch, { signal, header }) => {
      // A project that is deleted leaves batches of notifications that are gone.
      if (!(await notifications.get(batch.projectId, batch.notificationId))) return;
      const key = { projectId: batch.projectId, id: batch.batchId, batch, ...claimOfDead(header) };
      const run = await deliveries.seize(key, now());
      if (run) await carryOut.abandon(run, signal);
    }),
    on(DueV1, async ({ kind, projectId, id }, { signal, header }) => {
      if (kind === "notification") return bury(projectId, id as NotificationId);
      const run = await deliveries.seize({ projectId, id, ...claimOfDead(header) }, now());
      if (run) await carryOut.abandon(run, signal);
    }),
  ];

  return defineHandler({
    durable: "dispatch-bury", // renaming a durable replays its stream
    message: DeadLetter,
    concurrency: 8, // dead letters are rare
    async handle(delivery) {
      const subject = delivery.header(headerNames.deadSubject) ?? "";
      for (const attempt of buries) if (await attempt(subject, delivery)) return;
    },
  });
};

/** The claim that the dead message had on its row, where its letter says when it was published. */
const claimOfDead = (header: Delivery<unknown>["header"]): { claim?: number } => {
  const at = Date.parse(header(headerNames.deadPublishedAt) ?? "");
  return Number.isNaN(at) ? {} : { claim: claimOf({ publishedAt: new Date(at) }) };
};

/** Handles a dead letter whose message was of one contract; false when it was not. */
const on =
  <Schema extends z.ZodType>(
    contract: MessageContract<Schema>,
    bury: (data: z.output<Schema>, delivery: Delivery<unknown>) => Promise<void>,
  ) =>
  async (subject: string, delivery: Delivery<unknown>): Promise<boolean> => {
    if (!matches(contract.filter, subject)) return false;
    const parsed = contract.schema.safeParse(delivery.data);
    if (parsed.success) await bury(parsed.data as z.output<Schema>, delivery);
    return true;
  };

const matches = (filter: string, subject: string): boolean => {
  const [wanted, given] = [filter.split("."), subject.split(".")];
  return wanted.length === given.length && wanted.every((token, index) => token === "*" || token === given[index]);
};
