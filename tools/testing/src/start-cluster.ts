import { freePort } from "@herald/provision";
import { eventually } from "./eventually.ts";
import type { BrokerSource } from "./provided.ts";
import { type Broker, type BrokerOptions, processBroker } from "./start-broker.ts";

export type ClusterNode = Omit<Broker, "stop"> & {
  /** Its server name, as the broker reports a stream's leader. */
  readonly name: string;
  /** Waits until the node has all its streams and has caught up with their leaders. */
  healthy(): Promise<void>;
};

/** A cluster as one broker: its `url` lists all nodes, and its faults affect all of them. */
export type Cluster = Broker & { readonly nodes: readonly ClusterNode[] };

/** On a busy machine a node needs this long to read its store and catch up. */
const healthyWithinMs = 60_000;

/** Starts a cluster of three brokers. Each has a copy of every stream with three replicas, and two form a majority. */
export async function startCluster(options: BrokerOptions, source: BrokerSource): Promise<Cluster> {
  if (source.kind !== "binary") throw new Error(`a cluster is made of processes, and brokers here are: ${source.kind}`);
  const names = ["one", "two", "three"];
  const routePorts = await Promise.all(names.map(() => freePort()));
  const routes = routePorts.map((port) => `"nats://127.0.0.1:${port}"`).join(", ");
  const starting = names.map(async (name, index): Promise<[ClusterNode, Broker]> => {
    const monitor = `http://127.0.0.1:${await freePort()}`;
    const broker = await processBroker(source.path, {
      ...options,
      extraConfig: `server_name: ${name}
http: "${new URL(monitor).host}"
cluster { name: herald-test, listen: "127.0.0.1:${routePorts[index]}", routes: [${routes}] }
`,
    });
    const healthy = async () => {
      await eventually(
        async () => {
          const answer = await fetch(`${monitor}/healthz`, { signal: AbortSignal.timeout(5_000) });
          if (answer.status !== 200) throw new Error(`${name} is not healthy: ${await answer.text()}`);
        },
        { timeoutMs: healthyWithinMs },
      );
    };
    return [{ ...broker, name, healthy }, broker];
  });
  const settled = await Promise.allSettled(starting);
  const started = settled.flatMap((one) => (one.status === "fulfilled" ? [one.value] : []));
  const stop = async () => {
    await Promise.all(started.map(([, broker]) => broker.stop()));
  };
  const nodes = started.map(([node]) => node);
  const each = (what: "kill" | "restart" | "freeze" | "thaw") => async () => {
    await Promise.all(nodes.map((node) => node[what]()));
  };
  try {
    for (const one of settled) if (one.status === "rejected") throw one.reason;
    await Promise.all(nodes.map((node) => node.healthy()));
  } catch (error) {
    await stop();
    throw error;
  }
  const [first] = nodes as [ClusterNode, ...ClusterNode[]];
  return {
    url: nodes.map(({ url }) => url).join(","),
    loginOf: first.loginOf,
    dataDir: "",
    kill: each("kill"),
    restart: each("restart"),
    freeze: each("freeze"),
    thaw: each("thaw"),
    stop,
    nodes,
  };
}
