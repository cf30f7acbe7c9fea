import { spawn } from "node:child_process";
import { once } from "node:events";
import { text } from "node:stream/consumers";
import { type Line, median } from "./table.ts";

/** The figures of another sender for one kind of work. */
export type PeerFigures = {
  /** Sends a second, by run. */
  readonly rates: readonly number[];
  /** CPU of its own process in µs per send or push, if it reports any. */
  readonly cpuMicros?: number;
};

/** Another sender, measured on the same machine in the same run, with its own fake provider and load. */
export type Peer = {
  readonly name: string;
  readonly broadcast?: PeerFigures;
  readonly batches?: PeerFigures;
  readonly singles?: PeerFigures;
};

export type PeerWork = Exclude<keyof Peer, "name">;

const works: Readonly<Record<string, PeerWork>> = {
  broadcast: "broadcast",
  "batches of 100": "batches",
  singles: "singles",
};

const peerLine =
  /^(broadcast|batches of 100|singles): (\d+(?:\.\d+)?(?: \/ \d+(?:\.\d+)?)*) a second(?:, (\d+(?:\.\d+)?) µs(?: of (\S+)'s CPU)?)?/;

/** Reads lines such as `singles: 7512 / 7608 / 7690 a second, 120 µs of gorush's CPU each`. Throws if there are none. */
export const parsePeer = (output: string): Peer => {
  const found: Partial<Record<PeerWork, PeerFigures>> = {};
  let name = "the peer";
  for (const line of output.split("\n")) {
    const [, what = "", rates = "", cpu, sender] = peerLine.exec(line) ?? [];
    const work = works[what];
    if (work === undefined) continue;
    found[work] = { rates: rates.split(" / ").map(Number), ...(cpu === undefined ? {} : { cpuMicros: Number(cpu) }) };
    name = sender ?? name;
  }
  if (Object.keys(found).length === 0)
    throw new Error(
      "the command of HERALD_BENCH_PEER printed no line such as `singles: 7512 / 7608 / 7690 a second, 120 µs of gorush's CPU each`; it may also say `broadcast` and `batches of 100`",
    );
  return { name, ...found };
};

/** Runs the command in a shell, and reads what it prints. */
export const runPeer = async (command: string): Promise<Peer> => {
  const child = spawn("sh", ["-c", command], { stdio: ["ignore", "pipe", "inherit"] });
  const exited = once(child, "exit");
  const output = await text(child.stdout);
  const [code, signal] = await exited;
  if (code !== 0) throw new Error(`the command of HERALD_BENCH_PEER ended with ${signal ?? `exit code ${code}`}`);
  return parsePeer(output);
};

/** Lines that compare Herald's rates with the peer's. Empty if the peer did not do this work in this run. */
export const besidePeer = (peer: Peer | undefined, work: PeerWork, rates: readonly number[]): Line[] => {
  const figures = peer?.[work];
  if (peer === undefined || figures === undefined) return [];
  const middle = median(figures.rates);
  return [
    { label: `${peer.name}/s`, values: figures.rates },
    { label: `ratio to ${peer.name}`, values: rates.map((rate) => rate / middle), digits: 2 },
  ];
};
