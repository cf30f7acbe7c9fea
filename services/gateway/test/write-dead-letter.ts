import { randomUUID } from "node:crypto";
import { type Bus, publish } from "@herald/bus";
import { type DurableName, headerNames, type MessageContract } from "@herald/contracts";
import { z } from "zod";

/** Writes a message into the dead letters as the bus does, and returns its id. */
export const writeDeadLetter = async <Schema extends z.ZodType>(
  bus: Bus,
  durable: DurableName,
  contract: MessageContract<Schema>,
  data: z.output<Schema>,
  { reason = "schema", body = data as unknown, subject = contract.subject(data), headers = {} } = {},
): Promise<string> => {
  const dead = `push.dlq.v1.${durable}`;
  const raw: MessageContract = { name: "Raw", pattern: dead, filter: dead, schema: z.unknown(), subject: () => dead };
  const facts = {
    [headerNames.deadSubject]: subject,
    [headerNames.deadReason]: reason,
    [headerNames.deadDetail]: "content: is required",
    [headerNames.deadDeliveries]: "1",
    [headerNames.deadAt]: new Date().toISOString(),
    ...headers,
  };
  return String((await publish(bus, raw, body, { id: randomUUID(), headers: facts })).seq);
};
