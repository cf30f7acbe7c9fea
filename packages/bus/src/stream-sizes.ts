import { buckets, streams } from "@herald/contracts";
import { JetStreamApiError, type StreamConfig, type StreamInfo } from "@nats-io/jetstream";

const mebibyte = 1_048_576;
export const gibibyte = 1024 * mebibyte;
/** With less, the smallest bucket has no room for its entries. */
export const minStorage = 64 * mebibyte;

/** The declared size of all streams and buckets together. */
export const declaredBytes = [...Object.values(streams), ...Object.values(buckets)].reduce(
  (sum, { maxBytes }) => sum + maxBytes,
  0,
);

type Sized = Pick<StreamConfig, "max_bytes">;

export const total = (all: readonly Sized[]): number => all.reduce((sum, { max_bytes }) => sum + max_bytes, 0);

/** The broker has no room for the size of a stream. A cluster says it as one reason why no broker takes the stream. */
export const isOutOfStorage = (error: unknown): boolean =>
  error instanceof JetStreamApiError && /insufficient|storage resources/.test(error.message);

const shown = (bytes: number): string =>
  bytes < gibibyte ? `${Math.round(bytes / mebibyte)}MiB` : `${Math.round((bytes / gibibyte) * 10) / 10}GiB`;

/** Why a stream keeps its size, if it holds more than its new one: the broker would remove its oldest messages. */
export const smallerThanStored = ({ state }: StreamInfo, wanted: Sized, asked: number): string | undefined => {
  if (state.bytes <= wanted.max_bytes) return undefined;
  const needed = Math.ceil((state.bytes / wanted.max_bytes) * (asked / mebibyte));
  return `holds ${shown(state.bytes)} and keeps its size, because its share of HERALD_NATS_STORAGE=${shown(asked)} is ${shown(wanted.max_bytes)}: set HERALD_NATS_STORAGE=${needed}MiB or more, or run this again when it holds less`;
};

type Taken = { readonly asked: number; readonly taken: number; readonly refused: readonly string[] };

/**
 * What to set when the broker has no room for all. What it took fits for sure. Three brokers may take more than their limits, because each
 * learns late of what the others gave.
 */
export const tooLittleStorage = ({ asked, taken, refused }: Taken): string => {
  if (taken > asked)
    return `the streams have ${shown(taken)} of the broker's disk together, more than it may use, so it makes none smaller: it refused ${refused.join(", ")}. Set \`max_file_store\` of its configuration to ${shown(taken)} or more, run this again, and then set it as before`;
  const less = taken < minStorage ? "" : `Set HERALD_NATS_STORAGE=${Math.floor(taken / mebibyte)}MiB, or set`;
  return `the streams need ${shown(asked)} of the broker's disk together, as HERALD_NATS_STORAGE says, and it has room for ${shown(taken)} and little more: it refused ${refused.join(", ")}. ${less || "Set"} \`max_file_store\` of its configuration to ${shown(asked)} or more; without that setting, it is three quarters of the free disk`;
};
