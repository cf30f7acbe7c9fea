/**
 * Stands in for the image `mongo`: FerretDB on PostgreSQL with DocumentDB, with authentication. It reads the same variables and stores
 * data in the same folder. Its users may read and write every database, because DocumentDB has no role for a single one.
 */
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { cp, rename, rm } from "node:fs/promises";
import { setTimeout as delay } from "node:timers/promises";
import pg from "pg";

const sockets = "/tmp";
const data = "/data/db/postgres";
const settings = {
  shared_preload_libraries: "pg_cron,pg_documentdb_core,pg_documentdb,pg_documentdb_extended_rum",
  "cron.database_name": "postgres",
  "cron.host": sockets,
  "documentdb.alternate_index_handler_name": "extended_rum",
  "documentdb.localhost_connection_string": `host=${sockets}`,
  jit: "off",
  max_connections: "200",
  listen_addresses: "",
  unix_socket_directories: sockets,
};
const { MONGO_INITDB_ROOT_USERNAME: user = "", MONGO_INITDB_ROOT_PASSWORD: password = "" } = process.env;

if (!existsSync(data)) {
  await rm(`${data}.copying`, { recursive: true, force: true });
  await cp("/opt/documentdb/template", `${data}.copying`, { recursive: true });
  await rename(`${data}.copying`, data);
}
const flags = Object.entries(settings).flatMap(([key, value]) => ["-c", `${key}=${value}`]);
const postgres = spawn("/opt/documentdb/root/usr/lib/postgresql/18/bin/postgres", ["-D", data, ...flags], {
  stdio: "inherit",
});
postgres.once("exit", (code) => process.exit(code ?? 1));

const withPostgres = async <Result>(work: (client: pg.Client) => Promise<Result>): Promise<Result> => {
  for (;;) {
    const client = new pg.Client({ host: sockets, user: "postgres", database: "postgres" });
    try {
      await client.connect();
    } catch {
      await delay(100);
      continue;
    }
    return work(client).finally(() => client.end());
  }
};
await withPostgres(async (client) => {
  await client.query("UPDATE cron.job SET nodename = $1", [sockets]);
  const { rowCount } = await client.query("SELECT 1 FROM pg_roles WHERE rolname = $1", [user]);
  if (rowCount === 0 && user !== "") {
    const roles = ["clusterAdmin", "readWriteAnyDatabase"].map((role) => ({ role, db: "admin" }));
    await client.query("SELECT documentdb_api.create_user($1::text::documentdb_core.bson)", [
      JSON.stringify({ createUser: user, pwd: password, roles }),
    ]);
  }
});
const ferretdb = spawn(
  "/opt/ferretdb",
  [
    `--postgresql-url=postgres://postgres@/postgres?host=${sockets}`,
    "--listen-addr=0.0.0.0:27017",
    ...(user === "" ? ["--no-auth"] : []),
    "--telemetry=disable",
    "--state-dir=/tmp",
    "--debug-addr=-",
    "--log-level=WARN",
  ],
  { stdio: "inherit" },
);
ferretdb.once("exit", () => postgres.kill("SIGINT"));
for (const signal of ["SIGTERM", "SIGINT"] as const) process.once(signal, () => ferretdb.kill("SIGTERM"));
