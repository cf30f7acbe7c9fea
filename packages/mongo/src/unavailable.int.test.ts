import { createLogger, HeraldError } from "@herald/kit";
import { eventually, type FreshDatabase, faultyProxy, freshDatabase, leakCheck } from "@herald/testing";
import { MongoBulkWriteError, MongoServerError } from "mongodb";
import { afterAll, beforeAll, expect, type TestContext, test } from "vitest";
import { connectMongo } from "./connect-mongo.ts";
import { guardStore, isDatabaseUnavailable, unavailableAsError } from "./unavailable.ts";

let database: FreshDatabase;
beforeAll(async () => {
  database = await freshDatabase();
});
afterAll(() => database.drop());

/** A connection through a proxy of its own, so that tests can make the database unavailable beside each other. They end with the test. */
const connect = async ({ onTestFinished }: Pick<TestContext, "onTestFinished">) => {
  const proxy = await faultyProxy(database.url);
  const lines: string[] = [];
  const log = createLogger({ service: "test", level: "info", destination: { write: (line) => lines.push(line) } });
  const open = () => {
    const mongo = connectMongo({ url: proxy.url, database: database.name, log, appName: "test" });
    onTestFinished(() => mongo.close());
    return mongo;
  };
  onTestFinished(() => proxy.stop());
  return { proxy, open, said: () => lines.map((line) => JSON.parse(line).msg as string) };
};

test.concurrent("starts while the database is unavailable, logs what it waits for, and continues once it is available", async (context) => {
  const { proxy, open, said } = await connect(context);
  await proxy.cut();
  const mongo = open();
  let prepared = 0;
  const ready = mongo.prepare("indexes", async () => {
    prepared++;
    await mongo.db.collection("x").createIndex({ a: 1 });
  });
  await expect(unavailableAsError(() => mongo.db.collection("x").findOne({}))).rejects.toMatchObject({
    code: "database-unavailable",
  });
  expect(await mongo.ping()).toBe(false);
  expect(mongo.prepared()).toBe(false);
  await eventually(() =>
    expect(said()).toContainEqual(expect.stringMatching(/^waiting for the database: .*HERALD_MONGO_URL/)),
  );
  await proxy.heal();
  await ready;
  expect(mongo.prepared()).toBe(true);
  expect(prepared).toBe(1);
  expect(said()).toContain("the database is there");
  // A ping that takes most of a second counts as none.
  await eventually(async () => expect(await mongo.ping()).toBe(true));
});

test.concurrent("an outage under load is database-unavailable with Retry-After, and ends without a restart", async (context) => {
  const { proxy, open } = await connect(context);
  const mongo = open();
  const store = guardStore({
    name: "things",
    add: async (id: string) => {
      await mongo.db.collection<{ _id: string }>("things").insertOne({ _id: id });
    },
  });
  await store.add("before");
  await proxy.cut();
  const failure = store.add("during");
  await expect(failure).rejects.toBeInstanceOf(HeraldError);
  await expect(failure).rejects.toMatchObject({
    code: "database-unavailable",
    retryAfterSeconds: 5,
    cause: expect.anything(),
  });
  expect(await mongo.ping()).toBe(false);
  await proxy.heal();
  await eventually(() => store.add("after"));
  expect(store.name).toBe("things");
});

test.concurrent("a command in progress when the connection breaks fails with database-unavailable", async (context) => {
  const { proxy, open } = await connect(context);
  const mongo = open();
  await mongo.db.collection("x").insertOne({ a: 1 });
  const waiting = Array.from({ length: 20 }, () =>
    unavailableAsError(() => mongo.db.collection("x").countDocuments({})).then(
      () => "done",
      (error) => (error as HeraldError).code,
    ),
  );
  await proxy.cut();
  for (const outcome of await Promise.all(waiting)) expect(["done", "database-unavailable"]).toContain(outcome);
});

test("a command after close fails with database-unavailable", async (context) => {
  const mongo = (await connect(context)).open();
  await mongo.db.command({ ping: 1 });
  await mongo.close();
  await expect(unavailableAsError(() => mongo.db.collection("x").findOne({}))).rejects.toMatchObject({
    code: "database-unavailable",
  });
});

test("closing while it waits for the database ends the wait and frees everything", async (context) => {
  const { proxy, open } = await connect(context);
  await proxy.cut();
  const noLeak = leakCheck();
  const mongo = open();
  const preparing = mongo.prepare("indexes", () => mongo.db.command({ ping: 1 }));
  await mongo.close();
  await preparing;
  expect(mongo.prepared()).toBe(false);
  await noLeak();
});

test("other errors stay what they are", async (context) => {
  const mongo = (await connect(context)).open();
  await mongo.db.collection<{ _id: string }>("dup").insertOne({ _id: "a" });
  const store = guardStore({ add: () => mongo.db.collection<{ _id: string }>("dup").insertOne({ _id: "a" }) });
  await expect(store.add()).rejects.toMatchObject({ code: 11000 });
  await expect(unavailableAsError(() => Promise.reject(new TypeError("ours")))).rejects.toThrow(TypeError);
});

test("a function that throws before it waits is guarded, too", async () => {
  const store = guardStore({
    add: () => {
      throw new MongoServerError({ message: "not primary", code: 10107 });
    },
  });
  await expect(store.add()).rejects.toMatchObject({ code: "database-unavailable" });
});

test.concurrent("a bulk write that a lost connection interrupts is database-unavailable", async (context) => {
  const { proxy, open } = await connect(context);
  const mongo = open();
  await mongo.db.collection("bulk").insertOne({ a: 1 });
  await proxy.cut();
  const failure = unavailableAsError(() =>
    mongo.db.collection("bulk").insertMany([{ a: 1 }, { a: 2 }], { ordered: false }),
  );
  await expect(failure).rejects.toMatchObject({ code: "database-unavailable" });
  const wrapped = new MongoBulkWriteError(
    Object.assign(new Error("write EPIPE"), { code: "EPIPE", message: "write EPIPE", writeErrors: [] }) as never,
    {} as never,
  );
  expect(isDatabaseUnavailable(wrapped)).toBe(true);
});

test.each<[string, ConstructorParameters<typeof MongoServerError>[0], boolean]>([
  ["a primary that stepped down", { message: "x", code: 189 }, true],
  ["a server that shuts down", { message: "x", code: 91 }, true],
  ["a full disk", { message: "x", code: 14031 }, true],
  [
    "a full disk behind FerretDB",
    { message: 'could not extend file "base/1": No space left on device (SQLSTATE 53100)', code: 1 },
    true,
  ],
  [
    "a stopping PostgreSQL behind FerretDB",
    { message: "FATAL: terminating connection due to administrator command (SQLSTATE 57P01)", code: 1 },
    true,
  ],
  [
    "an absent PostgreSQL behind FerretDB",
    { message: "failed to connect to `user=x database=postgres`: dial error", code: 1 },
    true,
  ],
  ["a bad query", { message: "unknown operator: $foo", code: 2 }, false],
  ["a password that was changed", { message: "Authentication failed.", code: 18 }, true],
])("%s", (_name, answer, away) => {
  expect(isDatabaseUnavailable(new MongoServerError(answer))).toBe(away);
});
