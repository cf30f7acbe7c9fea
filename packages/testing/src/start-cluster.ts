import { freePort } from "@herald/local-stack";
import { eventually } from "./eventually.ts";
import type { BrokerSource } from "./provided.ts";
import { type Broker, type BrokerOptions, processBroker } from "./start-broker.ts";

export type ClusterNode = Omit<Broker, "stop"> & {
  /** What the cluster calls it, as in the name of a stream's leader. */
  readonly name: string;
  /** Waits until it takes part: its streams are there and as new as their leaders'. */
  healthy(): Promise<void>;
};

/** Its `url` names all nodes, and its faults hit all of them. */
export type Cluster = Broker & { readonly nodes: readonly ClusterNode[] };

/** A node of a busy machine reads its store and catches up. */
const healthyWithinMs = 60_000;

/** Three brokers as one: each holds a copy of every stream that asks for three, and two of them are a majority. */
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
