import type { IncomingMessage, ServerResponse } from "node:http";
import { createShares } from "../fair-gate.ts";
import { HeraldError } from "../herald-error.ts";

/** Reserves memory for a request. Throws overloaded or rate-limited. */
export type ReserveMemory = (bytes: number) => void;

/** A reservation lasts as long as its request. */
const retryAfterSeconds = 1;
/** Closing the connection avoids reading the rest of the refused request. */
const headers = { connection: "close" };

export type MemoryLimit = {
  /** Bytes that all requests have reserved. */
  used(): number;
  /** Returns the function that reserves memory for this request. The memory is released when its response or its connection closes. */
  forRequest(request: IncomingMessage, response: ServerResponse, address: string): ReserveMemory;
};

/**
 * Limits the memory of all requests together, and of each client address, for bodies that arrive and responses that are not read yet. The
 * last of it is for addresses that have none; see `createShares`.
 */
export const createMemoryLimit = ({
  maxBytes,
  maxPerAddress,
}: {
  maxBytes: number;
  maxPerAddress: number;
}): MemoryLimit => {
  const shares = createShares(maxBytes);
  return {
    used: () => maxBytes - shares.free(),
    forRequest: (request: IncomingMessage, response: ServerResponse, address: string) => {
      const { socket } = request;
      let own = 0;
      let closed = false;
      const release = () => {
        closed = true;
        response.off("close", release);
        socket.off("close", release);
        shares.give(address, own);
        own = 0;
      };
      response.once("close", release);
      // A response that waits behind another on its connection gets no event when the connection closes.
      socket.once("close", release);
      return (bytes: number) => {
        // A reservation after the close would never be released.
        if (closed) throw new HeraldError("malformed-request", "connection: was closed before the answer");
        if (shares.of(address) + bytes > maxPerAddress)
          throw new HeraldError(
            "rate-limited",
            `connection: requests of one address may have ${maxPerAddress} bytes under way; wait for the answers to earlier ones`,
            { retryAfterSeconds, headers },
          );
        if (bytes > shares.free() || !shares.has(address, bytes))
          throw new HeraldError("overloaded", "connection: too much is under way here; try again later", {
            retryAfterSeconds,
            headers,
          });
        own += bytes;
        shares.take(address, bytes);
      };
    },
  };
};
