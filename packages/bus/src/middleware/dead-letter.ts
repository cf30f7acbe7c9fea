import { headerNames } from "@herald/contracts";
import { InvalidArgumentError } from "@nats-io/transport-node";
import { streamOf } from "../define-handler.ts";
import { type DeliveryBatch, readsDeadLetters, type Settlement, type Step, type Task } from "../delivery-batch.ts";
import { brokerHeaders, keptPrefix, outgoingHeaders } from "../message-headers.ts";
import type { Received } from "../received-message.ts";
import { retryDelayMs } from "../settle.ts";
import { requestAck } from "../stream-request.ts";

type Dead = Extract<Settlement, { kind: "dead_lettered" }>;

/** Copies a message that can never succeed to the dead letters. While that fails, the message is retried, not terminated. */
export const deadLettered: Step = async (batch, next) => {
  const settlement = await next();
  if (settlement.kind !== "dead_lettered" || readsDeadLetters(batch.handler)) return settlement;
  try {
    for (const task of batch.tasks) await publishDeadLetter(batch, task, settlement);
    return settlement;
  } catch (error) {
    const deliveryCount = batch.tasks[0]?.received.deliveryCount ?? 1;
    return { kind: "retried", delayMs: retryDelayMs(deliveryCount), error };
  }
};

const publishDeadLetter = async (
  { connection, handler }: DeliveryBatch,
  { received }: Task,
  settlement: Dead,
): Promise<void> => {
  const subject = `push.dlq.v1.${handler.durable}`;
  const facts = {
    // Equal for every delivery, so that a crash before the term creates no second dead letter.
    [brokerHeaders.messageId]: `${handler.durable}/${received.key}`,
    [headerNames.deadSubject]: received.subject,
    [headerNames.deadStream]: streamOf(handler),
    [headerNames.deadSequence]: String(received.sequence),
    [headerNames.deadReason]: settlement.reason,
    [headerNames.deadDetail]: oneLine(settlement.detail),
    [headerNames.deadDeliveries]: String(received.deliveryCount),
    [headerNames.deadAt]: new Date().toISOString(),
    [headerNames.deadPublishedAt]: received.publishedAt.toISOString(),
  };
  try {
    await requestAck(connection, subject, received.body, outgoingHeaders({ ...originals(received), ...facts }));
  } catch (error) {
    if (!(error instanceof InvalidArgumentError)) throw error;
    // The body has the largest size that the broker accepts, so it no longer fits beside these headers.
    const bytes = received.body.length;
    const without = {
      ...facts,
      [headerNames.deadDetail]: `${facts[headerNames.deadDetail]} (a body of ${bytes} bytes, left out)`,
      [headerNames.deadBodyBytes]: String(bytes),
    };
    await requestAck(connection, subject, "", outgoingHeaders(without));
  }
};

/** The message's own headers. Broker headers, such as its id, are renamed so that they have no effect. */
const originals = ({ headers }: Received): Record<string, string> => {
  const kept: Record<string, string> = {};
  for (const name of headers?.keys() ?? []) {
    kept[name.startsWith("Nats-") ? `${keptPrefix}${name}` : name] = headers?.get(name) ?? "";
  }
  return kept;
};

/** A header is a single line. */
const oneLine = (text: string): string => text.replaceAll(/[\r\n]+/g, " ").slice(0, 500);
