import { type PeerWork, runPeer } from "../peer.ts";
import type { Row } from "../row.ts";
import type { Line } from "../table.ts";

const labels: Readonly<Record<PeerWork, string>> = {
  broadcast: "many tokens a request",
  batches: "100 a request",
  singles: "one a request",
};
const works = ["broadcast", "batches", "singles"] as const;

/** Another sender in the same run: later rows compare Herald with it. */
export const peerRow: Row = {
  name: "peer",
  about:
    "another sender, which the command in HERALD_BENCH_PEER runs and whose speed it prints; rows after it say their ratio to it",
  async *measure(context) {
    const command = process.env.HERALD_BENCH_PEER;
    if (!command) throw new Error("set HERALD_BENCH_PEER to a command that runs another sender and prints its speed");
    const peer = await runPeer(command);
    context.peer = peer;
    const lines = works.flatMap((work): Line[] => {
      const figures = peer[work];
      if (figures === undefined) return [];
      const { rates, cpuMicros } = figures;
      const rate: Line = { label: `${labels[work]}: sends/s`, values: rates, figure: `peer-${work}` };
      if (cpuMicros === undefined) return [rate];
      return [
        rate,
        { label: `${labels[work]}: CPU of its process, µs`, values: [cpuMicros], figure: `peer-${work}-cpu` },
      ];
    });
    yield { title: `the peer, ${peer.name}`, lines };
  },
};
