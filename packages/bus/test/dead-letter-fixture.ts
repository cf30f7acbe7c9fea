import { type DeadLetter, SendV1 } from "@herald/contracts";
import { jetstream } from "@nats-io/jetstream";
import { headers } from "@nats-io/transport-node";
import { z } from "zod";
import type { BusTest } from "./fixture.ts";

/** What a version that went wrong takes for the contract: nothing that is sent fulfils it. */
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

/** The same with many, which only the last waits for. */
export const writeLetters = async (t: BusTest, durables: readonly string[], body = "{}"): Promise<void> => {
  for (const durable of durables.slice(0, -1)) t.raw.nc.publish(`push.dlq.v1.${durable}`, body, { headers: headers() });
  await writeLetter(t, durables.at(-1) ?? "", {}, body);
};

export const idsOf = (rows: readonly DeadLetter[]): string[] => rows.map(({ id }) => id);
