import { Socket } from "node:net";

/**
 * Preloaded by a service: connections to a name of HERALD_HOSTILE_HOSTS go to the given local port instead, as if an attacker's
 * server had a public address.
 */
const ports: Record<string, number> = JSON.parse(process.env.HERALD_HOSTILE_HOSTS ?? "{}");

type Options = { host?: string; port?: number; lookup?: unknown };

const connect = Socket.prototype.connect;
Socket.prototype.connect = function (this: Socket, ...args: unknown[]) {
  const [options] = (Array.isArray(args[0]) ? args[0] : args) as [Options | undefined];
  const port = options?.host === undefined ? undefined : ports[options.host];
  if (options && port !== undefined) Object.assign(options, { host: "127.0.0.1", port, lookup: undefined });
  return (connect as (...args: unknown[]) => Socket).apply(this, args);
} as typeof connect;
