/** The part of `mongosh` that docker-compose.yml uses: `--eval` of an expression, or a file of commands, with `db` of the URL. */
import { readFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { MongoClient } from "mongodb";

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { quiet: { type: "boolean" }, norc: { type: "boolean" }, eval: { type: "string" } },
});
const url = positionals.find((one) => one.startsWith("mongodb://")) ?? "mongodb://127.0.0.1:27017/test";
const file = positionals.find((one) => one.endsWith(".js"));
let client = new MongoClient(url, { serverSelectionTimeoutMS: 5_000 });

type User = { readonly user: string; readonly pwd: string };
/** DocumentDB has no role for one database. */
const roles = ["clusterAdmin", "readWriteAnyDatabase"].map((role) => ({ role, db: "admin" }));
const database = (name: string) => ({
  auth: async (username: string, password: string) => {
    client = new MongoClient(url, { auth: { username, password }, authSource: name, serverSelectionTimeoutMS: 5_000 });
    return client.db(name).command({ ping: 1 });
  },
  adminCommand: (command: Record<string, unknown>) => client.db("admin").command(command),
  getUser: async (user: string) => {
    const { users = [] } = await client.db(name).command({ usersInfo: { user, db: name } });
    return users[0] ?? null;
  },
  createUser: ({ user, pwd }: User) => client.db(name).command({ createUser: user, pwd, roles }),
  updateUser: (user: string, { pwd }: User) => client.db(name).command({ updateUser: user, pwd }),
});

const program = file ? readFileSync(file, "utf8") : `return ${values.eval ?? "undefined"}`;
const run = new Function("db", "print", `return (async () => { ${program} })()`);
try {
  const result: unknown = await run(database(new URL(url).pathname.slice(1) || "test"), (line: unknown) =>
    process.stdout.write(`${line}\n`),
  );
  if (result !== undefined) process.stdout.write(`${JSON.stringify(result)}\n`);
} catch (error) {
  process.stderr.write(`${error}\n`);
  process.exitCode = 1;
}
await client.close();
