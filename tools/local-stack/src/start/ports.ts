import { setTimeout as delay } from "node:timers/promises";
import { freePort } from "@herald/provision";

/** The default ports. Broker and database do not use the usual 4222 and 27017, so that Herald starts beside another NATS or MongoDB. */
const defaults = {
  gateway: 8080,
  registry: 8081,
  dispatch: 8082,
  analytics: 8083,
  example: 8084,
  control: 8090,
  apns: 8091,
  fcm: 8092,
  webpush: 8093,
  gatewayMetrics: 9080,
  registryMetrics: 9081,
  dispatchMetrics: 9082,
  analyticsMetrics: 9083,
  nats: 14222,
  mongo: 37017,
} as const;

export type PortName = keyof typeof defaults;
export type Ports = Record<PortName, number>;
export const allPorts = Object.keys(defaults) as PortName[];

/** `HERALD_PORT` is the gateway's port, and moves the others by as much, except broker and database. */
const variableOf = (name: PortName): string =>
  name === "nats" || name === "mongo" ? `HERALD_${name.toUpperCase()}_PORT` : "HERALD_PORT";

/** The ports of this start: the defaults, or the values of variables; 0 takes free ports. Throws all problems at once. */
export async function readPorts(env: NodeJS.ProcessEnv): Promise<Ports> {
  const ports: Partial<Ports> = {};
  const problems = new Set<string>();
  for (const name of allPorts) {
    const variable = variableOf(name);
    const first = variable === "HERALD_PORT" ? defaults.gateway : defaults[name];
    const given = env[variable] ? Number(env[variable]) : first;
    const wanted = given === 0 ? 0 : given + defaults[name] - first;
    if (!Number.isInteger(given) || given < 0 || wanted > 65_535)
      problems.add(`${variable} is ${env[variable]}: a port is a whole number from 0 (a free one) to 65535`);
    else if (wanted > 0 && Object.values(ports).includes(wanted))
      problems.add(`${variable}: another part of Herald has port ${wanted} already`);
    else ports[name] = wanted;
  }
  if (problems.size > 0) throw new Error([...problems].join("\n"));
  for (const name of allPorts) {
    while (ports[name] === 0) {
      const free = await freePort();
      if (!Object.values(ports).includes(free)) ports[name] = free;
    }
  }
  return ports as Ports;
}

/** Waits up to `waitMs` for a previous start to release the ports. Throws if one is still taken, naming the variable that changes it. */
export async function expectFree(ports: Ports, names: readonly PortName[], waitMs: number): Promise<void> {
  const deadline = Date.now() + waitMs;
  for (;;) {
    const taken: PortName[] = [];
    for (const name of names) await freePort(ports[name]).catch(() => taken.push(name));
    if (taken.length === 0) return;
    if (Date.now() >= deadline) {
      const lines = taken.map((name) => `Port ${ports[name]} (${name}) is taken: set ${variableOf(name)} to another`);
      throw new Error(lines.join("\n"));
    }
    await delay(100);
  }
}

/** An environment that gives every part a free port, for tests and benches, because several run on one machine. */
export const freePortsEnvironment: Readonly<Record<string, string>> = Object.fromEntries(
  allPorts.map((name) => [variableOf(name), "0"]),
);
