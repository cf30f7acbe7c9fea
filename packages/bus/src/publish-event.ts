import { type EventContract, type EventName, events, headerNames, type OutboxEvent } from "@herald/contracts";
import type { Bus } from "./connect.ts";
import { publishAs } from "./publish.ts";

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
  const contract = events[event.event] as unknown as EventContract;
  const { projectId } = event.data as { projectId: string };
  await publishAs(bus, contract, event.data, {
    messageId: options.replay === undefined ? event.id : `${event.id}/${options.replay}`,
    headers: {
      [headerNames.ceSpecVersion]: "1.0",
      [headerNames.ceId]: event.id,
      [headerNames.ceSource]: `/projects/${projectId}`,
      [headerNames.ceType]: contract.ceType,
      [headerNames.ceTime]: event.at.toISOString(),
      [headerNames.ceSubject]: event.subject,
      [headerNames.contentType]: "application/json",
    },
  });
};
