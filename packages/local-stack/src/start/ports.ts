import { setTimeout as delay } from "node:timers/promises";
import { freePort } from "../processes/free-port.ts";

/** The port of the gateway, unless `HERALD_PORT` is another. */
const defaultPort = 8080;

/**
 * The ports on this machine, so that one variable moves them all: how far each is from the gateway's. Metrics ports are the services' ports
 * plus 1,000.
 */
const offsets = {
  gateway: 0,
  registry: 1,
  dispatch: 2,
  analytics: 3,
  example: 4,
  control: 10,
  apns: 11,
  fcm: 12,
  webpush: 13,
  gatewayMetrics: 1_000,
  registryMetrics: 1_001,
  dispatchMetrics: 1_002,
  analyticsMetrics: 1_003,
} as const;

/** Broker and database do not use the usual 4222 and 27017, so that Herald starts beside another NATS or MongoDB. */
const servers = {
  nats: { variable: "HERALD_NATS_PORT", port: 14222 },
  mongo: { variable: "HERALD_MONGO_PORT", port: 37017 },
} as const;

export type PortName = keyof typeof offsets | keyof typeof servers;
export type Ports = Record<PortName, number>;

const variableOf = (name: PortName): string => (name in servers ? servers[name as "nats"].variable : "HERALD_PORT");

export const allPorts = [...Object.keys(offsets), ...Object.keys(servers)] as PortName[];

/** The ports of this start: the defaults, or the values of variables; 0 takes free ports. Throws all problems at once. */
export async function readPorts(env: NodeJS.ProcessEnv): Promise<Ports> {
  const problems: string[] = [];
  const read = (variable: string, standard: number, max: number): number => {
    const wanted = env[variable] ? Number(env[variable]) : standard;
    if (!Number.isInteger(wanted) || wanted < 0 || wanted > max)
      problems.push(`${variable} is ${env[variable]}: a port is a whole number from 0 (a free one) to ${max}`);
    return wanted;
  };
  const first = read("HERALD_PORT", defaultPort, 65_535 - offsets.analyticsMetrics);
  const wanted: [PortName, number][] = [
    ...Object.entries(offsets).map(([name, offset]): [PortName, number] => [
      name as PortName,
      first === 0 ? 0 : first + offset,
    ]),
    ...Object.entries(servers).map(([name, { variable, port }]): [PortName, number] => [
      name as PortName,
      read(variable, port, 65_535),
    ]),
  ];
  const ports: Partial<Ports> = {};
  for (const [name, port] of wanted) {
    if (port > 0 && Object.values(ports).includes(port))
      problems.push(`${variableOf(name)}: another part of Herald has port ${port} already`);
    ports[name] = port;
  }
  if (problems.length > 0) throw new Error(problems.join("\n"));
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
      const lines = taken.map((name) =>
        name in servers
          ? `Port ${ports[name]} (${name}) is taken: set ${variableOf(name)} to another`
          : `Port ${ports[name]} (${name}) is taken: set HERALD_PORT to another, which moves all`,
      );
      throw new Error(lines.join("\n"));
    }
    await delay(100);
  }
}

/** An environment that gives every part a free port, for tests and benches, because several run on one machine. */
export const freePortsEnvironment: Readonly<Record<string, string>> = {
  HERALD_PORT: "0",
  HERALD_NATS_PORT: "0",
  HERALD_MONGO_PORT: "0",
};
