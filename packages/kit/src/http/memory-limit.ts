import type { IncomingMessage, ServerResponse } from "node:http";
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

/** Limits the memory of all requests together, and of each client address, for bodies that arrive and responses that are not read yet. */
export const createMemoryLimit = ({
  maxBytes,
  maxPerAddress,
}: {
  maxBytes: number;
  maxPerAddress: number;
}): MemoryLimit => {
  const byAddress = new Map<string, number>();
  let used = 0;
  const add = (address: string, bytes: number): void => {
    used += bytes;
    const own = (byAddress.get(address) ?? 0) + bytes;
    if (own > 0) byAddress.set(address, own);
    else byAddress.delete(address);
  };
  return {
    used: () => used,
    forRequest: (request: IncomingMessage, response: ServerResponse, address: string) => {
      const { socket } = request;
      let own = 0;
      let closed = false;
      const release = () => {
        closed = true;
        response.off("close", release);
        socket.off("close", release);
        add(address, -own);
        own = 0;
      };
      response.once("close", release);
      // A response that waits behind another on its connection gets no event when the connection closes.
      socket.once("close", release);
      return (bytes: number) => {
        // A reservation after the close would never be released.
        if (closed) throw new HeraldError("malformed-request", "connection: was closed before the answer");
        if ((byAddress.get(address) ?? 0) + bytes > maxPerAddress)
          throw new HeraldError(
            "rate-limited",
            `connection: requests of one address may have ${maxPerAddress} bytes under way; wait for the answers to earlier ones`,
            { retryAfterSeconds, headers },
          );
        if (used + bytes > maxBytes)
          throw new HeraldError("overloaded", "connection: too much is under way here; try again later", {
            retryAfterSeconds,
            headers,
          });
        own += bytes;
        add(address, bytes);
      };
    },
  };
};
