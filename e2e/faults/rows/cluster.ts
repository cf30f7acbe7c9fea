import { type BrokerHands, type Cluster, operateBroker, startCluster } from "@herald/testing";
import type { System } from "../../harness/system.ts";
import { type Fixture, NotHere, type Row } from "../row.ts";
import { slowness } from "../slowness.ts";
import { seconds, startTrial } from "../trial.ts";

/** The cluster elects a new leader within seconds, and clients reconnect to another server. */
const electedWithinMs = 20_000;

const rows = {
  kill: "the leader of a stream in a cluster of three killed, absent during broadcasts, and back",
  freeze: "the same, frozen by SIGSTOP",
} as const;

/** A system on a cluster. */
const clustered: Fixture<{ system: System; nodes: Cluster["nodes"]; hands: BrokerHands }> = {
  open: async ({ start, brokerSource, defer }) => {
    if (brokerSource.kind !== "binary") throw new NotHere(`brokers are not processes here: ${brokerSource.kind}`);
    let cluster: Cluster | undefined;
    const system = await start({
      env: { HERALD_NATS_REPLICAS: "3" },
      broker: async () => {
        cluster = await startCluster({ syncAlways: true }, brokerSource);
        return cluster;
      },
    });
    if (!cluster) throw new Error("the system was started without its broker");
    const hands = await operateBroker(system.broker);
    defer(() => hands.close());
    return { system, nodes: cluster.nodes, hands };
  },
};

const clusterRow = (how: keyof typeof rows): Row => ({
  name: `cluster-${how}`,
  fault: rows[how],
  pass: "three copies of each stream; only 202 or 503 with Retry-After; 202 again within 20 s without the node",
  fixture: clustered,
  run: async ({ long, use }) => {
    const { system, nodes, hands } = await use(clustered);
    const trial = await startTrial(system);
    const streams = long
      ? (["PUSH_CMD", "PUSH_DELIVER", "PUSH_EVENTS", "PUSH_SCHEDULE"] as const)
      : (["PUSH_CMD"] as const);
    const failovers: string[] = [];
    for (const stream of streams) {
      await trial.broadcastUnderWay();
      const copies = await hands.copies(stream);
      if (copies !== nodes.length) trial.problem(`${stream} has ${copies} copies`);
      const leader = await hands.leader(stream);
      const node = nodes.find(({ name }) => name === leader);
      if (!node) throw new Error(`${stream} is led by ${leader ?? "no node"}`);
      if (how === "kill") await node.kill();
      else await node.freeze();
      const [took, slow] = [await trial.recovered(), await slowness()];
      failovers.push(`${stream} ${seconds(took)}`);
      if (took > electedWithinMs * slow) trial.problem(`without the leader of ${stream} sends waited ${seconds(took)}`);
      await trial.broadcastUnderWay();
      if (how === "kill") await node.restart();
      else await node.thaw();
      await Promise.all(nodes.map(({ healthy }) => healthy()));
      await trial.recovered();
      await system.ready();
    }
    // 409: the repeat of a send came while the broker still had not said whether it has the key of the first.
    for (const status of trial.load.answers.keys())
      if (![202, 409, 503].includes(status)) trial.problem(`a send was answered ${status}`);
    trial.note(`taken again with one node down: ${failovers.join(", ")}`);
    return trial.finish({ timeoutMs: 120_000 });
  },
});

export const clusterRows: readonly Row[] = (["kill", "freeze"] as const).map(clusterRow);
