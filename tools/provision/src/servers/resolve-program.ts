import { binaryVersion, findBinary, isAtLeast } from "../processes/run-command.ts";
import { type DockerService, type DockerStarter, dockerEngine } from "./docker.ts";

export type StackOptions = {
  /** Holds the data, configuration and log of a server that is started here. Unused when the server runs elsewhere. */
  dataDir: string;
  /** 0 takes a free port. */
  port: number;
  /** Read for PATH, the cache folder and the proxies. Its two HERALD_ URLs are the first step of the search. */
  env: NodeJS.ProcessEnv;
  progress: (line: string) => void;
  docker?: DockerStarter;
};

/** `onlyTell` fetches and starts nothing; the answer says what a start would do. */
export type ResolveOptions = Pick<StackOptions, "env" | "progress" | "docker"> & { onlyTell?: boolean };

export type RunningServer = {
  url: string;
  source: Source;
  /** The processes started here, the server itself first; empty when the server runs elsewhere. */
  pids: number[];
  /** Settles with the reason when one of its processes ends, also after `stop`; never when the server runs elsewhere. */
  ended: Promise<string>;
  /** Replaces the password of a server that was started with one. Open connections stay. */
  setPassword?: (password: string) => Promise<void>;
  /** Repeatable. */
  stop: () => Promise<unknown>;
};

type Step = "environment" | "docker" | "path" | "cache";

/** The result of one step, in words to show to the user. */
export type ProgramAttempt = { step: Step; chosen: boolean; why: string };

type Source = { step: Step; why: string };

/** A step returns the server or program, or only the reason why it has none. */
export type StepAnswer<T> = { found: T; why: string } | { found?: undefined; why: string };

export type ProgramResolution<T> = { choice: T | undefined; attempts: ProgramAttempt[] };

export type FetchOptions = { env: NodeJS.ProcessEnv; progress: (line: string) => void; onlyTell: boolean };

/** A server that Herald needs. `Own` is a program that Herald starts itself. */
type Program<Own, Options> = {
  /** Its name and what helps without it, for errors. */
  what: string;
  remedy: string;
  /** The variable with the URL of a running server. */
  variable: "HERALD_NATS_URL" | "HERALD_MONGO_URL";
  /** Its name on PATH, and the oldest supported version (`major.minor`). */
  binary: string;
  minimum: string;
  own: (path: string) => Own;
  /** The last step: takes the program from the cache, else from the network. */
  fetched: (options: FetchOptions) => Promise<StepAnswer<Own>>;
  start: (own: Own, options: Options) => Promise<Omit<RunningServer, "source">>;
};

type Choice<Own> = { kind: "url"; url: string } | { kind: "container"; service: DockerService } | Own;

/** How this machine gets the server. */
export function serverOf<Own extends { kind: string }, Options extends StackOptions>(program: Program<Own, Options>) {
  /** Finds the server that this machine uses, with the result of each step. Fetches a program when no other step has one. */
  const resolve = ({
    env,
    progress,
    docker,
    onlyTell = false,
  }: ResolveOptions): Promise<ProgramResolution<Choice<Own>>> =>
    firstThatAnswers<Choice<Own>>([
      { step: "environment", ask: async () => inEnvironment(program.variable, env) },
      { step: "docker", ask: () => askDocker(docker, { env, progress, onlyTell }) },
      { step: "path", ask: () => onPath(program, env) },
      { step: "cache", ask: () => program.fetched({ env, progress, onlyTell }) },
    ]);
  /** Starts it, from the first step that has one. Otherwise throws an error that lists the tried steps and the remedy. */
  const start = async (options: Options): Promise<RunningServer> => {
    const { choice, attempts } = await resolve(options);
    const source = attempts.find(({ chosen }) => chosen);
    if (!choice || !source) {
      const tried = attempts.map(({ step, why }) => `  ${step.padEnd(11)} ${why}`);
      throw new Error([`This machine has no ${program.what}. Tried:`, ...tried, program.remedy].join("\n"));
    }
    // This process does not notice the end of a server that runs elsewhere.
    const elsewhere = { source, pids: [], ended: new Promise<never>(() => {}) };
    if ("url" in choice) return { ...elsewhere, url: choice.url, stop: async () => {} };
    if ("service" in choice) return { ...elsewhere, ...choice.service };
    return { source, ...(await program.start(choice as Own, options)) };
  };
  return { resolve, start };
}

function inEnvironment(variable: string, env: NodeJS.ProcessEnv): StepAnswer<{ kind: "url"; url: string }> {
  const url = env[variable];
  return url ? { found: { kind: "url", url }, why: `${variable} is set` } : { why: `${variable} is not set` };
}

async function askDocker(
  starter: DockerStarter | undefined,
  options: FetchOptions,
): Promise<StepAnswer<{ kind: "container"; service: DockerService }>> {
  const found = (service: DockerService) => ({ kind: "container" as const, service });
  if (!starter) return { why: "Docker is not used here" };
  const engine = await dockerEngine(options.env);
  if ("why" in engine) return { why: `no Docker engine: ${engine.why}` };
  const why = `Docker ${engine.version} answers: ${starter.what}`;
  if (options.onlyTell) return { found: found({ url: "", stop: async () => {} }), why };
  try {
    return { found: found(await starter.start(options.progress)), why };
  } catch (error) {
    return { why: `Docker ${engine.version} answers, but ${error instanceof Error ? error.message : String(error)}` };
  }
}

async function onPath<Own>(
  { binary, minimum, own }: Pick<Program<Own, never>, "binary" | "minimum" | "own">,
  env: NodeJS.ProcessEnv,
): Promise<StepAnswer<Own>> {
  const path = await findBinary(binary, env.PATH);
  if (!path) return { why: `${binary} is not on PATH` };
  const version = await binaryVersion(path);
  if (!version) return { why: `${path} names no version` };
  if (!isAtLeast(version, minimum)) return { why: `${path} is ${version}, and ≥ ${minimum} is needed` };
  return { found: own(path), why: `${path} ${version}` };
}

/** Tries the steps in order and stops at the first that finds something. A step that throws has found nothing. */
export async function firstThatAnswers<T>(
  steps: readonly { step: Step; ask: () => Promise<StepAnswer<T>> }[],
): Promise<ProgramResolution<T>> {
  const attempts: ProgramAttempt[] = [];
  for (const { step, ask } of steps) {
    const answer = await ask().catch((error: unknown): StepAnswer<T> => {
      return { why: error instanceof Error ? error.message : String(error) };
    });
    attempts.push({ step, chosen: answer.found !== undefined, why: answer.why });
    if (answer.found !== undefined) return { choice: answer.found, attempts };
  }
  return { choice: undefined, attempts };
}
