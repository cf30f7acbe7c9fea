import { once } from "node:events";
import { connect } from "node:net";
import type { MongoClient } from "mongodb";

/** Reads the version from the greeting of the broker: `INFO {…}`. */
const natsVersion = async (url: string): Promise<string> => {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  try {
    const [greeting] = await once(socket, "data");
    return /"version":"([^"]+)"/.exec(String(greeting))?.[1] ?? "of an unknown version";
  } finally {
    socket.destroy();
  }
};

/** Name and version of the broker and the database. */
export type Versions = { readonly broker: string; readonly database: string };

/** The start-up warning in which FerretDB names its backend. */
const poweredBy = /Powered by (.+?)\.?"/;

const databaseVersion = async (mongo: MongoClient): Promise<string> => {
  const admin = mongo.db("admin");
  const { version, ferretdb } = await admin.command({ buildInfo: 1 });
  if (ferretdb === undefined) return `MongoDB ${version}`;
  const { log } = (await admin.command({ getLog: "startupWarnings" })) as unknown as { log: string[] };
  return poweredBy.exec(log.join("\n"))?.[1] ?? `FerretDB ${ferretdb.version}`;
};

export const versionsOf = async (natsUrl: string, mongo: MongoClient): Promise<Versions> => ({
  broker: `nats-server ${await natsVersion(natsUrl)}`,
  database: await databaseVersion(mongo),
});
