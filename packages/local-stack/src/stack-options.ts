import type { Source } from "./chain.ts";
import type { DockerStarter } from "./docker.ts";

/** What both servers are started with. */
export type StackOptions = {
  /** Holds the data, the configuration and the log of what is started. Not used when the server is somewhere else. */
  dataDir: string;
  /** 0 takes a free one. */
  port: number;
  /** Read for PATH, the cache folder and the proxies; the two HERALD_ URLs in it are the chain's first step. */
  env: NodeJS.ProcessEnv;
  progress: (line: string) => void;
  docker?: DockerStarter;
};

/** What `resolve…` needs of that. `onlyTell` fetches and starts nothing. */
export type ResolveOptions = Pick<StackOptions, "env" | "progress" | "docker"> & { onlyTell?: boolean };

/** For a server that somebody else runs: it is not ours to notice its end. */
export const neverEnds: Promise<never> = new Promise(() => {});

export type RunningServer = {
  url: string;
  source: Source;
  /** Of what was started here, the one that serves first; empty when the server is somewhere else. */
  pids: number[];
  /** Settles with what happened when a process of it ends, also when it was stopped; never when it is somewhere else. */
  ended: Promise<string>;
  /** Repeatable. */
  stop: () => Promise<void>;
};
