const firstLimit = 100; // RFC 9113 asks servers to allow at least as many
const refusalsOfABrokenPeer = 10; // in a row, one stream at a time: it serves no requests

/**
 * How many streams a peer is trusted with. It grows by one with each answer and halves when the peer refuses streams
 * below its own limit: a peer that goes away after 50 streams, or promises more than it serves, then costs few repeats.
 */
export function createConcurrencyLimit(max: number) {
  let limit = Math.min(firstLimit, max);
  let halvedAt = 0;
  let refusals = 0;
  return {
    limit: () => limit,
    answered(): void {
      refusals = 0;
      if (limit < max) limit++;
    },
    /**
     * All refusals of streams that were open at the same time are one sign, not many: `newest` is the last stream opened
     * by now. Returns true when the peer refuses every stream.
     */
    refused(streamId: number, newest: number, inFlight: number): boolean {
      if (++refusals >= refusalsOfABrokenPeer && limit === 1) return true;
      if (streamId > halvedAt) {
        limit = Math.max(1, Math.floor(Math.min(limit, inFlight + 1) / 2));
        halvedAt = newest;
      }
      return false;
    },
  };
}
