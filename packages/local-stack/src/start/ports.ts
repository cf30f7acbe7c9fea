import { setTimeout as delay } from "node:timers/promises";
import { freePort } from "../processes/free-port.ts";

/**
 * The ports on this machine. Broker and database do not use the usual 4222 and 27017, so that Herald starts beside another NATS or
 * MongoDB. Metrics ports are the services' ports plus 1,000.
 */
const table = {
  gateway: { variable: "HERALD_GATEWAY_PORT", port: 8080 },
  registry: { variable: "HERALD_REGISTRY_PORT", port: 8081 },
  dispatch: { variable: "HERALD_DISPATCH_PORT", port: 8082 },
  analytics: { variable: "HERALD_ANALYTICS_PORT", port: 8083 },
  gatewayMetrics: { variable: "HERALD_GATEWAY_METRICS_PORT", port: 9080 },
  registryMetrics: { variable: "HERALD_REGISTRY_METRICS_PORT", port: 9081 },
  dispatchMetrics: { variable: "HERALD_DISPATCH_METRICS_PORT", port: 9082 },
  analyticsMetrics: { variable: "HERALD_ANALYTICS_METRICS_PORT", port: 9083 },
  control: { variable: "HERALD_SIMULATORS_CONTROL_PORT", port: 8090 },
  apns: { variable: "HERALD_SIMULATORS_APNS_PORT", port: 8091 },
  fcm: { variable: "HERALD_SIMULATORS_FCM_PORT", port: 8092 },
  webpush: { variable: "HERALD_SIMULATORS_WEBPUSH_PORT", port: 8093 },
  nats: { variable: "HERALD_NATS_PORT", port: 14222 },
  mongo: { variable: "HERALD_MONGO_PORT", port: 37017 },
  example: { variable: "HERALD_EXAMPLE_PORT", port: 8084 },
} as const;

export type PortName = keyof typeof table;
export type Ports = Record<PortName, number>;

/** The ports of this start: the defaults, or the values of variables; 0 takes a free port. Throws all problems at once. */
export async function readPorts(env: NodeJS.ProcessEnv): Promise<Ports> {
  const ports: Partial<Ports> = {};
  const problems: string[] = [];
  for (const [name, { variable, port }] of Object.entries(table) as [PortName, (typeof table)[PortName]][]) {
    const wanted = env[variable] ? Number(env[variable]) : port;
    if (!Number.isInteger(wanted) || wanted < 0 || wanted > 65_535) {
      problems.push(`${variable} is ${env[variable]}: a port is a whole number from 0 (a free one) to 65535`);
    } else if (wanted > 0 && Object.values(ports).includes(wanted)) {
      problems.push(`${variable}: another part of Herald has port ${wanted} already`);
    } else ports[name] = wanted;
  }
  if (problems.length > 0) throw new Error(problems.join("\n"));
  for (const name of Object.keys(table) as PortName[]) {
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
      const lines = taken.map(
        (name) => `Port ${ports[name]} (${name}) is taken: set ${table[name].variable} to another`,
      );
      throw new Error(lines.join("\n"));
    }
    await delay(100);
  }
}

/** An environment that gives every part a free port, for tests and benches, because several run on one machine. */
export const freePortsEnvironment: Readonly<Record<string, string>> = Object.fromEntries(
  Object.values(table).map(({ variable }) => [variable, "0"]),
);

export const allPorts = Object.keys(table) as PortName[];
