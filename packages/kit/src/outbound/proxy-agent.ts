import { Agent, type AgentOptions } from "node:https";
import { type ConnectionOptions, connect } from "node:tls";
import type { Dial } from "./proxy.ts";

/**
 * An agent of `node:https` that opens a connection by what `dialTo` returns for its server, or directly if that is undefined. It does not
 * limit its sockets: Node does not count those that are being opened.
 */
export function createProxyAgent(dialTo: (server: URL) => Dial | undefined, options: AgentOptions): Agent {
  const agent = new Agent(options);
  const direct = agent.createConnection.bind(agent);
  const end = agent.destroy.bind(agent);
  const closing = new AbortController();
  agent.destroy = () => {
    closing.abort(new Error("closed while connecting"));
    end();
  };
  agent.createConnection = (target, done) => {
    const { host = "", port = 443 } = target as { readonly host?: string; readonly port?: number | string };
    const dial = dialTo(new URL(`https://${host.includes(":") ? `[${host}]` : host}:${port}`));
    if (dial === undefined) return direct(target, done);
    dial(closing.signal).then(
      (socket) => done?.(null, connect({ ...target, socket } as ConnectionOptions)),
      (error: Error) => done?.(error, undefined as never),
    );
    return undefined;
  };
  return agent;
}
