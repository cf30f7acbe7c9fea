import { Agent, request as httpRequest, type IncomingHttpHeaders } from "node:http";
import { connect, type Socket } from "node:net";

type Answer = { readonly status: number; readonly headers: IncomingHttpHeaders; readonly text: string };
type Asked = { readonly headers?: Readonly<Record<string, string>>; readonly body?: string | Buffer };

/**
 * A sender of requests with an address of its own: on Linux every address of 127.0.0.0/8 is this machine. Connections are kept, so
 * that what is measured is the request.
 */
export function stranger(gateway: string, address: string) {
  const { hostname, port } = new URL(gateway);
  const agent = new Agent({ keepAlive: true, maxSockets: 8 });
  const ask = (method: string, path: string, { headers = {}, body }: Asked = {}): Promise<Answer> =>
    new Promise((resolve, reject) => {
      const type = body === undefined ? {} : { "content-type": "application/json" };
      const sent = httpRequest(
        { agent, host: hostname, port, localAddress: address, method, path, headers: { ...type, ...headers } },
        (response) => {
          const chunks: Buffer[] = [];
          response.on("data", (chunk) => chunks.push(chunk));
          response.on("error", reject);
          response.on("end", () =>
            resolve({
              status: response.statusCode ?? 0,
              headers: response.headers,
              text: Buffer.concat(chunks).toString(),
            }),
          );
        },
      );
      sent.on("error", reject);
      sent.end(body);
    });
  return {
    ask,
    /** Sends the same request repeatedly, eight at a time. Resolves to the number of answers by status. */
    flood: async (count: number, method: string, path: string, asked?: Asked): Promise<Record<number, number>> => {
      const statuses: Record<number, number> = {};
      let left = count;
      const one = async () => {
        while (left-- > 0) {
          const { status } = await ask(method, path, asked);
          statuses[status] = (statuses[status] ?? 0) + 1;
        }
      };
      await Promise.all(Array.from({ length: 8 }, one));
      return statuses;
    },
    /** A bare connection. Its errors are ignored. */
    open: (): Socket => connect({ host: hostname, port: Number(port), localAddress: address }).on("error", () => {}),
    close: () => agent.destroy(),
  };
}
