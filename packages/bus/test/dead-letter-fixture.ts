import { type DeadLetter, SendV1 } from "@herald/contracts";
import { jetstream } from "@nats-io/jetstream";
import { headers } from "@nats-io/transport-node";
import { z } from "zod";
import type { BusTest } from "./fixture.ts";

/** The contract of a broken version: no sent message matches it. */
export const brokenSend = {
  ...SendV1,
  schema: SendV1.schema.extend({ fromTheFuture: z.string() }),
} as unknown as typeof SendV1;

/** A dead letter as any version may have written it. */
export const writeLetter = async (
  { raw }: BusTest,
  durable: string,
  facts: Record<string, string>,
  body: string | Uint8Array = "{}",
): Promise<string> => {
  const all = headers();
  for (const [name, value] of Object.entries(facts)) all.set(name, value);
  return String((await jetstream(raw.nc).publish(`push.dlq.v1.${durable}`, body, { headers: all })).seq);
};

/** Writes many dead letters and waits for the last one only. */
export const writeLetters = async (t: BusTest, durables: readonly string[], body = "{}"): Promise<void> => {
  for (const durable of durables.slice(0, -1)) t.raw.nc.publish(`push.dlq.v1.${durable}`, body, { headers: headers() });
  await writeLetter(t, durables.at(-1) ?? "", {}, body);
};

export const idsOf = (rows: readonly DeadLetter[]): string[] => rows.map(({ id }) => id);
