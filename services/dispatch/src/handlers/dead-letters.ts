import { type DeadMessage, defineDeadLetterHandler } from "@herald/bus";
import {
  contractOf,
  DeliverBatchV1,
  DueV1,
  ExpandedV1,
  ExpandV1,
  type GroupedSend,
  type MessageContract,
  type NotificationId,
  readGroup,
  SendGroupV1,
  SendOneV1,
  SendV1,
} from "@herald/contracts";
import type { z } from "zod";
import type { DeliveryDeps } from "../delivery/create-delivery.ts";
import { throwAny } from "../delivery/deliver-sends.ts";
import type { Deps } from "../deps.ts";
import { claimOf, deadLetterClaim, rootOf } from "../stores/delivery-document.ts";

type DeadLetterDeps = Pick<Deps, "deliveries" | "notifications" | "now" | "recipients"> &
  Pick<DeliveryDeps, "begun" | "expandQueued" | "expansionSteps" | "finisher" | "pipeline">;

/**
 * Gives the devices of a dead-lettered message their final state: failed with `internal`.
 * A message that does not parse names no device, so it stays in the dead letters for an operator.
 */
export const handleDeadLetters = (deps: DeadLetterDeps) => {
  const { begun, notifications, recipients, deliveries, pipeline, finisher, expandQueued, expansionSteps, now } = deps;

  /** Sends nothing, but expands the notification, so that every device it targets is counted. */
  const abandonAll = async (projectId: SendV1["projectId"], id: NotificationId) => {
    await notifications.abandon(projectId, id, now());
    await expandQueued(projectId);
  };

  const endSends = async (
    sends: readonly GroupedSend[],
    message: DeadMessage["message"],
    signal: AbortSignal,
  ): Promise<void> =>
    throwAny(await begun.abandon(sends, { claim: message ? claimOf(message) : deadLetterClaim, signal }));

  const handlers = [
    on({ ...SendGroupV1, schema: SendGroupV1.schema.pick({ sends: true }) }, (group, message, signal) =>
      endSends(readGroup(group).sends, message, signal),
    ),
    on(SendOneV1, (send, message, signal) => endSends([send], message, signal)),
    on(SendV1, async (send) => {
      await notifications.insertAbandoned(send, now());
      await recipients.insert(send, now());
      await abandonAll(send.projectId, send.notificationId);
    }),
    on(ExpandV1, async ({ projectId, notificationId }) => {
      await notifications.expansionLost(projectId, notificationId, now());
      await expandQueued(projectId);
    }),
    on(ExpandedV1, async (data, message) => {
      const { projectId, notificationId } = data;
      await expansionSteps.expanded(data, message?.publishedAt ?? now());
      await expandQueued(projectId);
      await finisher.check(projectId, notificationId);
    }),
    on(DeliverBatchV1, async (batch, message, signal) => {
      // Deleting a project leaves batches whose notifications no longer exist.
      const document = await notifications.getState(batch.projectId, batch.notificationId);
      if (!document) return;
      const row = { projectId: batch.projectId, id: batch.batchId };
      const run = await deliveries.claim(row, message && claimOf(message), now(), batch, document.tags);
      if (run) await pipeline.abandon(run, signal);
      else await pipeline.resume(rootOf(batch));
    }),
    on(DueV1, async ({ kind, projectId, id }, message, signal) => {
      if (kind === "activity") return;
      if (kind === "notification") return abandonAll(projectId, id as NotificationId);
      const run = await deliveries.claim({ projectId, id }, message && claimOf(message), now());
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

/** Makes a handler for dead letters of one contract. It resolves to false for a message of another contract. */
const on =
  <Schema extends z.ZodType>(
    contract: Pick<MessageContract<Schema>, "name" | "schema">,
    abandonAll: (data: z.output<Schema>, message: DeadMessage["message"], signal: AbortSignal) => Promise<void>,
  ) =>
  async ({ subject, body, message }: DeadMessage, signal: AbortSignal): Promise<boolean> => {
    if (contractOf(subject)?.name !== contract.name) return false;
    const parsed = contract.schema.safeParse(body);
    if (parsed.success) await abandonAll(parsed.data, message, signal);
    return true;
  };
