import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { onTestFinished } from "vitest";

export type Taken = {
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingMessage["headers"];
  readonly body: string;
};

type Step = (response: ServerResponse, request: Taken) => void;

/** Answers with JSON, or with a problem document where `type` says so. */
export const answer =
  (status: number, body: unknown, headers: Record<string, string> = {}): Step =>
  (response) => {
    const type = status < 400 ? "application/json" : "application/problem+json";
    response.writeHead(status, { "content-type": type, "x-request-id": "req-1", ...headers });
    response.end(JSON.stringify(body));
  };

export const problem = (status: number, slug: string, headers?: Record<string, string>): Step =>
  answer(
    status,
    { errors: [`${slug}!`], type: `/docs/errors#${slug}`, title: slug, status, instance: "req-1" },
    headers,
  );

/** Takes the request, and ends the connection without an answer. */
export const hangUp: Step = (response) => response.destroy();

/** Never answers. */
export const noAnswer: Step = () => {};

/** Stands where a gateway would until the test ends. Answers each request by the next step; the last one answers all that follow. */
export async function startScriptedServer(steps: readonly Step[]) {
  const taken: Taken[] = [];
  const server = createServer(async (request, response) => {
    const { method = "", url = "", headers } = request;
    const one = { method, url, headers, body: Buffer.concat(await request.toArray()).toString() };
    taken.push(one);
    (steps[taken.length - 1] ?? steps.at(-1))?.(response, one);
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  onTestFinished(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    taken,
  };
}
