import { type DurableName, durables, type StreamName } from "@herald/contracts";
import type { ConsumerInfo, StreamInfo } from "@nats-io/jetstream";
import { ownerOf } from "./permissions/index.ts";

/**
 * The sequence up to which a durable has had and settled all that is for it. `state` must be older than `info`: where nothing waits,
 * all that the stream held then is done, also what the durable's filter leaves out.
 */
export const positionOf = (
  { num_pending, num_ack_pending, ack_floor }: Pick<ConsumerInfo, "num_pending" | "num_ack_pending" | "ack_floor">,
  { last_seq }: Pick<StreamInfo["state"], "last_seq">,
): number => (num_pending === 0 && num_ack_pending === 0 ? last_seq : ack_floor.stream_seq);

/** Herald's own durables of a stream. */
export const durablesOf = (stream: StreamName): DurableName[] =>
  (Object.keys(durables) as DurableName[]).filter(
    (durable) => durables[durable].stream === stream && ownerOf(durable) !== undefined,
  );
