import type { Answer, Resolution } from "../chain.ts";
import { cacheFolder } from "../provision/cache-folder.ts";
import { type Choice, type FetchOptions, resolveProgram } from "../resolve-program.ts";
import type { ResolveOptions } from "../stack-options.ts";
import { images } from "../versions.ts";
import { cachedFerret, type FerretPrograms, fetchFerret } from "./fetch-ferretdb.ts";
import { cachedMongod, fetchMongod } from "./fetch-mongod.ts";
import { postgresUser, programsFor } from "./postgres-user.ts";

const minVersion = "7.0";

export const mongoRemedy = `This helps: docker run -d -p 127.0.0.1:27017:27017 ${images.mongo}   (then set HERALD_MONGO_URL=mongodb://127.0.0.1:27017)`;

type OwnMongo = { kind: "mongod"; path: string } | { kind: "ferretdb"; programs: FerretPrograms };
export type MongoChoice = Choice<OwnMongo>;

/** Which database is used here, and what each step of the chain said. */
export const resolveMongo = (options: ResolveOptions): Promise<Resolution<MongoChoice>> =>
  resolveProgram<OwnMongo>(
    {
      variable: "HERALD_MONGO_URL",
      binary: "mongod",
      minimum: minVersion,
      own: (path) => ({ kind: "mongod", path }),
      fetched,
    },
    options,
  );

/** What is there already comes before the network: data made with one engine cannot be read by the other. */
async function fetched({ env, progress, onlyTell }: FetchOptions): Promise<Answer<OwnMongo>> {
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
