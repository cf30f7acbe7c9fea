import { type Answer, firstThatAnswers, type Resolution } from "./chain.ts";
import { askDocker, type DockerService } from "./docker.ts";
import { binaryVersion, findBinary, isAtLeast } from "./processes/find-binary.ts";
import type { ResolveOptions } from "./stack-options.ts";

export type FetchOptions = { env: NodeJS.ProcessEnv; progress: (line: string) => void; onlyTell: boolean };

/** A server that Herald needs, and what of the chain differs from one to the other. `Own` is a program started here. */
export type Program<Own> = {
  /** Names a server that runs already. */
  variable: "HERALD_NATS_URL" | "HERALD_MONGO_URL";
  /** As it is called on PATH, and the version (`major.minor`) from which on it serves. */
  binary: string;
  minimum: string;
  own: (path: string) => Own;
  /** The chain's last step: out of the cache, else from the network. With `onlyTell` it only says what it would do. */
  fetched: (options: FetchOptions) => Promise<Answer<Own>>;
};

export type Choice<Own> = { kind: "url"; url: string } | { kind: "container"; service: DockerService } | Own;

/** Which server is used here, and what each step of the chain said. Fetches one when nothing else answers. */
export function resolveProgram<Own>(
  program: Program<Own>,
  { env, progress, docker, onlyTell = false }: ResolveOptions,
): Promise<Resolution<Choice<Own>>> {
  return firstThatAnswers<Choice<Own>>([
    { step: "environment", ask: async () => inEnvironment(program.variable, env) },
    {
      step: "docker",
      ask: async () => {
        const { found, why } = await askDocker(docker, { env, progress, onlyTell });
        return found ? { found: { kind: "container", service: found }, why } : { why };
      },
    },
    { step: "path", ask: () => onPath(program, env) },
    { step: "cache", ask: () => program.fetched({ env, progress, onlyTell }) },
  ]);
}

function inEnvironment(variable: string, env: NodeJS.ProcessEnv): Answer<{ kind: "url"; url: string }> {
  const url = env[variable];
  return url ? { found: { kind: "url", url }, why: `${variable} is set` } : { why: `${variable} is not set` };
}

async function onPath<Own>({ binary, minimum, own }: Program<Own>, env: NodeJS.ProcessEnv): Promise<Answer<Own>> {
  const path = await findBinary(binary, env.PATH);
  if (!path) return { why: `${binary} is not on PATH` };
  const version = await binaryVersion(path);
  if (!version) return { why: `${path} names no version` };
  if (!isAtLeast(version, minimum)) return { why: `${path} is ${version}, and ≥ ${minimum} is needed` };
  return { found: own(path), why: `${path} ${version}` };
}
