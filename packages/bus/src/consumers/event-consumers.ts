import { AckPolicy, type ConsumerConfig, DeliverPolicy, JetStreamApiError, ReplayPolicy } from "@nats-io/jetstream";
import { nanos } from "@nats-io/transport-node";
import { apiCodes } from "../bus-error.ts";
import { type Bus, connectionOf } from "../connect.ts";
import { consumedStream } from "../permissions/index.ts";
import type { From } from "./consumer-arguments.ts";

/** As `consumers-opens`: settled within 30 s or delivered again, without end. */
const settings = {
  ack_policy: AckPolicy.Explicit,
  replay_policy: ReplayPolicy.Instant,
  ack_wait: nanos(30_000),
  max_ack_pending: 20_000,
  max_deliver: -1,
};

const startOf = (from: From): Partial<ConsumerConfig> => {
  if (from === "all") return { deliver_policy: DeliverPolicy.All };
  if (from === "new") return { deliver_policy: DeliverPolicy.New };
  return { deliver_policy: DeliverPolicy.StartTime, opt_start_time: from.toISOString() };
};

/** Makes a consumer's durable; one that is there gets these filters and keeps its position. */
export const putEventConsumer = async (
  bus: Bus,
  durable: string,
  { filters, from }: { filters: readonly string[]; from: From },
): Promise<"created" | "updated"> => {
  const { jsm } = connectionOf(bus);
  const found = await configOf(bus, durable);
  if (found === undefined) {
    await jsm.consumers.add(consumedStream, {
      ...settings,
      ...startOf(from),
      filter_subjects: [...filters],
      durable_name: durable,
    });
    return "created";
  }
  await jsm.consumers.update(consumedStream, durable, { ...found, filter_subjects: [...filters] });
  return "updated";
};

/** Recreates the durable, because its start position cannot be changed; its readers go on reading. False: it does not exist. */
export const replayEventConsumer = async (bus: Bus, durable: string, from: From): Promise<boolean> => {
  const { jsm } = connectionOf(bus);
  const found = await configOf(bus, durable);
  if (found === undefined) return false;
  const { opt_start_time, opt_start_seq, deliver_policy, ...kept } = found;
  await jsm.consumers.delete(consumedStream, durable);
  await jsm.consumers.add(consumedStream, { ...kept, ...startOf(from) });
  return true;
};

/** False: there was none. */
export const removeEventConsumer = async (bus: Bus, durable: string): Promise<boolean> => {
  if ((await configOf(bus, durable)) === undefined) return false;
  await connectionOf(bus).jsm.consumers.delete(consumedStream, durable);
  return true;
};

const configOf = async (bus: Bus, durable: string): Promise<ConsumerConfig | undefined> => {
  try {
    return (await connectionOf(bus).jsm.consumers.info(consumedStream, durable)).config;
  } catch (error) {
    if (error instanceof JetStreamApiError && error.code === apiCodes.consumerNotFound) return undefined;
    throw error;
  }
};
