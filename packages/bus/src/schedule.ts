import type { MessageContract } from "@herald/contracts";
import type { z } from "zod";
import { type Bus, connectionOf } from "./connect.ts";
import { brokerHeaders, messageIdOf, outgoingHeaders } from "./message-headers.ts";
import { publishing } from "./publish.ts";
import { requestAck } from "./stream-request.ts";

export type Scheduled<Schema extends z.ZodType> = {
  /** Where the schedule waits: `push.sched.v1.…`. A second one on the same subject replaces the first. */
  readonly subject: string;
  /** When the broker publishes the message on the contract's subject; a past time publishes at once. */
  readonly at: Date;
  /** The contract of the message. Its subject must belong to the schedule's stream. */
  readonly contract: MessageContract<Schema>;
  readonly data: z.output<Schema>;
  /** The id of the schedule, as with `publish`. The message that it becomes has none. */
  readonly id: string;
};

/** Has the broker publish a message later. Resolves after the stream's ack; throws as `publish` does. */
export const schedule = async <Schema extends z.ZodType>(
  bus: Bus,
  { subject, at, contract, data, id }: Scheduled<Schema>,
): Promise<void> => {
  const connection = connectionOf(bus);
  const valid = contract.schema.parse(data) as z.output<Schema>;
  const headers = {
    [brokerHeaders.messageId]: messageIdOf(contract, id),
    [brokerHeaders.schedule]: `@at ${at.toISOString()}`,
    [brokerHeaders.scheduleTarget]: contract.subject(valid),
  };
  await publishing(connection, `schedule ${contract.pattern}`, async () => {
    await requestAck(connection, subject, JSON.stringify(valid), outgoingHeaders(headers));
    return {};
  });
};
