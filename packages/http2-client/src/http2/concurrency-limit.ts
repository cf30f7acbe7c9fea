const FIRST_STREAMS = 100; // RFC 9113 asks servers to allow at least as many
const REFUSALS_OF_A_BROKEN_PEER = 10; // in a row, one stream at a time: it serves nobody

/**
 * How many streams a peer is trusted with. It grows by one with each answer and halves when the peer refuses streams
 * below its own limit: a peer that goes away after 50 streams, or promises more than it serves, then costs few repeats.
 */
export function createAllowance(most: number) {
  let streams = Math.min(FIRST_STREAMS, most);
  let halvedAt = 0;
  let refusals = 0;
  return {
    streams: () => streams,
    answered(): void {
      refusals = 0;
      if (streams < most) streams++;
    },
    /**
     * All refusals of streams that were open at the same time are one sign, not many: `newest` is the last stream opened
     * by now. Returns true when the peer refuses every stream.
     */
    refused(streamId: number, newest: number, inFlight: number): boolean {
      if (++refusals >= REFUSALS_OF_A_BROKEN_PEER && streams === 1) return true;
      if (streamId > halvedAt) {
        streams = Math.max(1, Math.floor(Math.min(streams, inFlight + 1) / 2));
        halvedAt = newest;
      }
      return false;
    },
  };
}
