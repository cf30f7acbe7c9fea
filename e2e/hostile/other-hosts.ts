import { Socket } from "node:net";

/**
 * Loaded before a service: a connection to a name of HERALD_HOSTILE_HOSTS goes to that port of this machine instead, as if a
 * stranger's server stood at a public address.
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
