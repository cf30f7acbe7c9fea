import { type Answer, firstThatAnswers, type Resolution } from "../chain.ts";
import { askDocker, type DockerService } from "../docker.ts";
import { binaryVersion, findBinary, isAtLeast } from "../processes/find-binary.ts";
import { cacheFolder } from "../provision/cache-folder.ts";
import type { ResolveOptions } from "../stack-options.ts";
import { cachedFerret, type FerretPrograms, fetchFerret } from "./fetch-ferretdb.ts";
import { cachedMongod, fetchMongod } from "./fetch-mongod.ts";
import { postgresUser, programsFor } from "./postgres-user.ts";

const MINIMUM = "7.0";

export const MONGO_REMEDY = `This helps: docker run -d -p 27017:27017 mongo:8   (then set HERALD_MONGO_URL=mongodb://127.0.0.1:27017)`;

export type MongoChoice =
  | { kind: "url"; url: string }
  | { kind: "container"; service: DockerService }
  | { kind: "mongod"; path: string }
  | { kind: "ferretdb"; programs: FerretPrograms };

/** Which database is used here, and what each step of the chain said. Fetches one when nothing else answers. */
export function resolveMongo(options: ResolveOptions): Promise<Resolution<MongoChoice>> {
  const { env, progress, docker, onlyTell = false } = options;
  return firstThatAnswers<MongoChoice>([
    {
      step: "environment",
      ask: async () =>
        env.HERALD_MONGO_URL
          ? { found: { kind: "url", url: env.HERALD_MONGO_URL }, why: "HERALD_MONGO_URL is set" }
          : { why: "HERALD_MONGO_URL is not set" },
    },
    {
      step: "docker",
      ask: async () => {
        const { found, why } = await askDocker(docker, { env, progress, onlyTell });
        return found ? { found: { kind: "container", service: found }, why } : { why };
      },
    },
    { step: "path", ask: () => onPath(env) },
    { step: "cache", ask: () => fetched({ env, progress, onlyTell }) },
  ]);
}

async function onPath(env: NodeJS.ProcessEnv): Promise<Answer<MongoChoice>> {
  const path = await findBinary("mongod", env.PATH);
  if (!path) return { why: "mongod is not on PATH" };
  const version = await binaryVersion(path);
  if (!version) return { why: `${path} names no version` };
  if (!isAtLeast(version, MINIMUM)) return { why: `${path} is ${version}, and ≥ ${MINIMUM} is needed` };
  return { found: { kind: "mongod", path }, why: `${path} ${version}` };
}

type FetchOptions = { env: NodeJS.ProcessEnv; progress: (line: string) => void; onlyTell: boolean };

/** What is there already comes before the network: data made with one engine cannot be read by the other. */
async function fetched({ env, progress, onlyTell }: FetchOptions): Promise<Answer<MongoChoice>> {
  const cache = cacheFolder(env);
  const mongod = await cachedMongod(cache);
  if (mongod) return { found: { kind: "mongod", path: mongod }, why: `fetched earlier: ${mongod}` };
  const ferret = await cachedFerret(await ferretFolder(cache, env).catch(() => cache));
  if (ferret) {
    const why = `fetched earlier: FerretDB on DocumentDB, ${ferret.ferretdb}`;
    return { found: { kind: "ferretdb", programs: ferret }, why };
  }
  if (onlyTell) {
    const why = "would be fetched: mongod from its maker where that is in reach, else FerretDB 2 on DocumentDB";
    return { found: { kind: "mongod", path: "" }, why };
  }
  const mongodOr = await fetchMongod(cache, progress).catch((error: Error) => error);
  if (typeof mongodOr === "string") return { found: { kind: "mongod", path: mongodOr }, why: `fetched: ${mongodOr}` };
  progress(`no mongod (${mongodOr.message}): FerretDB 2 on PostgreSQL with DocumentDB instead`);
  try {
    const programs = await fetchFerret({ cache: await ferretFolder(cache, env), env, progress });
    return {
      found: { kind: "ferretdb", programs },
      why: `fetched: FerretDB on DocumentDB, because ${mongodOr.message}`,
    };
  } catch (error) {
    return { why: `${mongodOr.message}; ${error instanceof Error ? error.message : String(error)}` };
  }
}

const ferretFolder = async (cache: string, env: NodeJS.ProcessEnv) => programsFor(await postgresUser(env), cache);
