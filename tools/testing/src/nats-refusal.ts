import { once } from "node:events";
import { connect } from "node:net";

/**
 * Sends one line of the NATS protocol, such as `SUB push.evt.> 1`, as this user, and returns the broker's error; undefined if the broker
 * accepts the line. Uses no client library, so that only the permission decides.
 */
export async function natsRefusal(
  { url, user = "", password = "" }: { url: string; user?: string; password?: string },
  line: string,
): Promise<string | undefined> {
  const { port, hostname } = new URL(url);
  const socket = connect(Number(port), hostname).setEncoding("utf8");
  try {
    await once(socket, "connect");
    const credentials = { user, pass: password, verbose: false, pedantic: false, lang: "test", version: "1" };
    socket.write(`CONNECT ${JSON.stringify(credentials)}\r\n${line}\r\nPING\r\n`);
    let answer = "";
    for await (const text of socket) {
      answer += text;
      const refusal = /-ERR '([^']*(?:'[^'\r\n]+)*)'\r\n/.exec(answer)?.[1];
      if (refusal !== undefined) return refusal;
      if (answer.includes("PONG\r\n")) return undefined;
    }
    throw new Error(`the broker has hung up: ${answer}`);
  } finally {
    socket.destroy();
  }
}
