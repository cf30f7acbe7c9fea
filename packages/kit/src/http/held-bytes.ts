import type { IncomingMessage, ServerResponse } from "node:http";
import { HeraldError } from "../herald-error.ts";

/** What may be held at a time of bodies that arrive and of answers that nobody took yet. */
export type BytesLimit = { readonly most: number; readonly perAddress: number };

/** Counts bytes that a request makes this process hold. Throws overloaded or rate-limited where there is no room for them. */
export type Hold = (bytes: number) => void;

export type HeldBytes = {
  /** The account of one request, which is closed with its response or its connection, whatever comes of the request. */
  readonly holdFor: (request: IncomingMessage, response: ServerResponse, address: string) => Hold;
  readonly held: () => number;
};

/** What is held is there for the length of a request. */
const retryAfterSeconds = 1;
/** The connection too: what would still come on it would have to be read. */
const headers = { connection: "close" };

/** Bounds what all requests together hold, and what those of one address do, so that one cannot take all. */
export const createHeldBytes = ({ most, perAddress }: BytesLimit): HeldBytes => {
  const byAddress = new Map<string, number>();
  let all = 0;
  const add = (address: string, bytes: number): void => {
    all += bytes;
    const own = (byAddress.get(address) ?? 0) + bytes;
    if (own > 0) byAddress.set(address, own);
    else byAddress.delete(address);
  };
  return {
    held: () => all,
    holdFor: (request, response, address) => {
      const { socket } = request;
      let own = 0;
      let closed = false;
      const close = () => {
        closed = true;
        response.off("close", close);
        socket.off("close", close);
        add(address, -own);
        own = 0;
      };
      response.once("close", close);
      // A response that waits behind another on the same connection is never told that the connection is gone.
      socket.once("close", close);
      return (bytes) => {
        // Nobody is there any more to answer, and nothing would give it back.
        if (closed) throw new HeraldError("malformed-request", "connection: was closed before the answer");
        if ((byAddress.get(address) ?? 0) + bytes > perAddress)
          throw new HeraldError(
            "rate-limited",
            `connection: requests of one address may have ${perAddress} bytes under way; wait for the answers to earlier ones`,
            { retryAfterSeconds, headers },
          );
        if (all + bytes > most)
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
