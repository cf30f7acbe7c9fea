import { headerNames } from "@herald/contracts";
import { InvalidArgumentError } from "@nats-io/transport-node";
import { streamOf } from "../define-handler.ts";
import { type DeliveryBatch, readsDeadLetters, type Settlement, type Step, type Task } from "../delivery-batch.ts";
import { brokerHeaders, keptPrefix, outgoingHeaders } from "../message-headers.ts";
import type { Received } from "../received-message.ts";
import { retryDelayMs } from "../settle.ts";
import { requestAck } from "../stream-request.ts";

type Dead = Extract<Settlement, { kind: "dead_lettered" }>;

/** Puts a message that can never succeed into the dead letters. Until that is done it is not given up: it comes again. */
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
    // The same for every delivery, so that a crash before the term makes no second letter.
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
    // As large as the broker takes, so with these headers it no longer fits.
    const bytes = received.body.length;
    const without = {
      ...facts,
      [headerNames.deadDetail]: `${facts[headerNames.deadDetail]} (a body of ${bytes} bytes, left out)`,
      [headerNames.deadBodyBytes]: String(bytes),
    };
    await requestAck(connection, subject, "", outgoingHeaders(without));
  }
};

/** The message's own headers. Those of the broker, such as its id, are kept where they do nothing. */
const originals = ({ headers }: Received): Record<string, string> => {
  const kept: Record<string, string> = {};
  for (const name of headers?.keys() ?? []) {
    kept[name.startsWith("Nats-") ? `${keptPrefix}${name}` : name] = headers?.get(name) ?? "";
  }
  return kept;
};

/** A header is one line, and what explains a failure fits one. */
const oneLine = (text: string): string => text.replaceAll(/[\r\n]+/g, " ").slice(0, 500);
