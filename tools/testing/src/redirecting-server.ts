import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";

export type RedirectingServer = {
  readonly url: string;
  /** Headers and body of each request that followed the redirect to another origin. */
  readonly followed: readonly string[];
  readonly stop: () => Promise<void>;
};

const listen = (server: Server): Promise<string> =>
  new Promise((resolve) => {
    server.listen(0, "127.0.0.1", () => resolve(`http://127.0.0.1:${(server.address() as AddressInfo).port}`));
  });

/** Sends every request to another origin with 307, which keeps method and body. Browsers may read both. */
export async function startRedirectingServer(): Promise<RedirectingServer> {
  const followed: string[] = [];
  const open = {
    "access-control-allow-origin": "*",
    "access-control-allow-headers": "*, authorization",
    "access-control-allow-methods": "*",
  };
  const target = createServer(async (request, response) => {
    let body = "";
    for await (const part of request) body += part;
    // A question of the browser's own, without credential and body.
    if (request.method !== "OPTIONS") followed.push(`${JSON.stringify(request.headers)} ${body}`);
    response.writeHead(200, open).end("{}");
  });
  const away = await listen(target);
  const server = createServer((request, response) => {
    request.resume();
    if (request.method === "OPTIONS") response.writeHead(204, open).end();
    else response.writeHead(307, { ...open, location: `${away}${request.url}` }).end();
  });
  const url = await listen(server);
  return {
    url,
    followed,
    stop: async () => {
      for (const each of [server, target]) {
        each.closeAllConnections();
        await new Promise((resolve) => each.close(resolve));
      }
    },
  };
}
