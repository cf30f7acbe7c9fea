import { cacheFolder } from "../fetch/provision.ts";
import { goAccepted } from "../fetch/toolchains.ts";
import { images } from "../versions.ts";
import { cachedFerret, type FerretPrograms, fetchFerret, startFerretdb } from "./ferretdb.ts";
import { cachedMongod, fetchMongod, startMongod } from "./mongod.ts";
import { postgresUser, programsFor } from "./postgres.ts";
import { type FetchOptions, type StackOptions, type StepAnswer, serverOf } from "./resolve-program.ts";

const minVersion = "7.0";

export const mongoRemedy = `One of these is enough: a running Docker engine; mongod ≥ ${minVersion} on PATH; on Debian, ${goAccepted}; HERALD_MONGO_URL of a server, such as mongodb://127.0.0.1:27017 after docker run -d -p 127.0.0.1:27017:27017 ${images.mongo}`;

type OwnMongo = { kind: "mongod"; path: string } | { kind: "ferretdb"; programs: FerretPrograms };
const mongod = (path: string): OwnMongo => ({ kind: "mongod", path });

/** Uses the cache before the network, because one engine cannot read the other's data. */
async function fetched({ env, progress, onlyTell }: FetchOptions): Promise<StepAnswer<OwnMongo>> {
  const cache = cacheFolder(env);
  const mayBeMongod = env.HERALD_LOCAL_DATABASE !== "ferretdb";
  const cached = mayBeMongod && (await cachedMongod(cache));
  if (cached) return { found: mongod(cached), why: `fetched earlier: ${cached}` };
  const ferret = cachedFerret(await ferretFolder(cache, env).catch(() => cache));
  if (ferret) {
    const why = `fetched earlier: FerretDB on DocumentDB, ${ferret.ferretdb}`;
    return { found: { kind: "ferretdb", programs: ferret }, why };
  }
  if (onlyTell) {
    const why = "would be fetched: mongod from its maker where that is in reach, else FerretDB 2 on DocumentDB";
    return { found: mongod(""), why };
  }
  const mongodOr = mayBeMongod
    ? await fetchMongod(cache, progress).catch((error: Error) => error)
    : new Error("HERALD_LOCAL_DATABASE names FerretDB");
  if (typeof mongodOr === "string") return { found: mongod(mongodOr), why: `fetched: ${mongodOr}` };
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

type MongoOptions = StackOptions & {
  /** Data survives a power failure (default). Tests disable this for speed. */
  durable?: boolean;
  /** FerretDB alone: the server asks for this password, of letters and digits. */
  password?: string;
};

/** A database that speaks MongoDB's protocol. */
export const { resolve: resolveMongo, start: startMongo } = serverOf<OwnMongo, MongoOptions>({
  what: "MongoDB-protocol database",
  remedy: mongoRemedy,
  variable: "HERALD_MONGO_URL",
  binary: "mongod",
  minimum: minVersion,
  own: mongod,
  fetched,
  start: (own, { durable = true, ...options }) =>
    own.kind === "mongod" ? startMongod(own.path, options) : startFerretdb(own.programs, { ...options, durable }),
});
