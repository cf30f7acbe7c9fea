import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

export type Posted = {
  readonly headers: Record<string, string>;
  readonly body: string;
  readonly path: string;
};

type Answer = (posted: Posted, response: ServerResponse, request: IncomingMessage) => unknown;

/** A webhook that records its requests and responds as the test says. */
export const startReceiver = async () => {
  const posts: Posted[] = [];
  let answer: Answer = () => 204;
  let connections = 0;
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    const headers = Object.fromEntries(
      Object.entries(request.headers).map(([name, value]) => [name, String(value)] as const),
    );
    const posted = { headers, body: Buffer.concat(chunks).toString(), path: request.url ?? "" };
    posts.push(posted);
    const status = await answer(posted, response, request);
    if (typeof status === "number") response.writeHead(status).end();
  });
  server.on("connection", () => connections++);
  await once(server.listen(0, "127.0.0.1"), "listening");
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}/hook`,
    port,
    posts,
    connections: () => connections,
    /** Sets a status, or a function that returns one; it returns none if it responds itself or never. */
    answers: (next: Answer | number) => {
      answer = typeof next === "number" ? () => next : next;
    },
    stop: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
};

export type Receiver = Awaited<ReturnType<typeof startReceiver>>;

/** Receivers that are stopped together. */
export const createReceivers = () => {
  const receivers: Receiver[] = [];
  return {
    newReceiver: async () => {
      const receiver = await startReceiver();
      receivers.push(receiver);
      return receiver;
    },
    stopReceivers: async () => {
      for (const receiver of receivers.splice(0)) await receiver.stop();
    },
  };
};
