import { nothingAnswered, sourceOf } from "../chain.ts";
import { neverEnds, type RunningServer, type StackOptions } from "../stack-options.ts";
import { mongoRemedy, resolveMongo } from "./resolve-mongo.ts";
import { startFerretdb } from "./start-ferretdb.ts";
import { startMongod } from "./start-mongod.ts";

export type MongoOptions = StackOptions & {
  /** Data survives a power failure (default). Tests give it up for speed. */
  durable?: boolean;
};

/** A database that speaks MongoDB's protocol, from the first step of the chain that answers. */
export async function startMongo(options: MongoOptions): Promise<RunningServer> {
  const { dataDir, port, env, durable = true } = options;
  const { choice, attempts } = await resolveMongo(options);
  if (!choice) throw nothingAnswered("A MongoDB-protocol database", attempts, mongoRemedy);
  const source = sourceOf(attempts);
  switch (choice.kind) {
    case "url":
      return { url: choice.url, source, pids: [], ended: neverEnds, stop: async () => {} };
    case "container":
      return { ...choice.service, source, pids: [], ended: neverEnds };
    case "mongod":
      return { source, ...(await startMongod(choice.path, { dataDir, port, env })) };
    case "ferretdb":
      return { source, ...(await startFerretdb(choice.programs, { dataDir, port, env, durable })) };
  }
}
