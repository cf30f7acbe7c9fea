import { type EventContract, type EventName, events, headerNames, type OutboxEvent } from "@herald/contracts";
import { batchLimit } from "./atomic-batch.ts";
import type { Bus } from "./connect.ts";
import { publishAs } from "./publish.ts";
import { encode, type Outgoing, sendBatched } from "./publish-in-batch.ts";

/**
 * Publishes a fact as a CloudEvent in NATS binary mode and resolves after the stream's ack.
 * `ce-id` is the event's id however often it is published; `replay` makes a Nats-Msg-Id of its own, so that a deliberate
 * repeat is not swallowed as a duplicate. Throws as `publish` does.
 */
export const publishEvent = async <Name extends EventName>(
  bus: Bus,
  event: OutboxEvent<Name>,
  options: { readonly replay?: string } = {},
): Promise<void> => {
  const { contract, data, ...rest } = messageOf(event as OutboxEvent, options.replay);
  await publishAs(bus, contract, data, rest);
};

/**
 * Publishes facts as {@link publishEvent} does, up to 1,000 in one batch: at a fraction of the cost of each alone. When it
 * throws, some of them may have been stored; published again, they are taken once.
 */
export const publishEvents = async (bus: Bus, facts: readonly OutboxEvent[]): Promise<void> => {
  for (let from = 0; from < facts.length; from += batchLimit)
    await sendBatched(
      bus,
      facts.slice(from, from + batchLimit).map((event) => encode(messageOf(event))),
    );
};

/** An event as the bus carries it. */
export const messageOf = (event: OutboxEvent, replay?: string): Outgoing => {
  const contract = events[event.event] as unknown as EventContract;
  const { project_id } = event.data;
  return {
    contract,
    data: event.data,
    messageId: replay === undefined ? event.id : `${event.id}/${replay}`,
    headers: {
      [headerNames.ceSpecVersion]: "1.0",
      [headerNames.ceId]: event.id,
      [headerNames.ceSource]: `/projects/${project_id}`,
      [headerNames.ceType]: contract.ceType,
      [headerNames.ceTime]: event.at.toISOString(),
      [headerNames.ceSubject]: event.subject,
      [headerNames.contentType]: "application/json",
    },
  };
};
