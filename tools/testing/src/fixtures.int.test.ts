import { connect } from "node:net";
import { MongoClient } from "mongodb";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { eventually } from "./eventually.ts";
import { faultyProxy } from "./faulty-proxy.ts";
import { freshDatabase } from "./fresh-database.ts";
import { leakCheck } from "./leak-check.ts";
import { type Broker, startBroker } from "./start-broker.ts";

/** The server's first message on a new connection; rejects if none arrives in time. */
const greeting = (url: string, timeoutMs = 20_000): Promise<string> =>
  new Promise((resolve, reject) => {
    const socket = connect(Number(new URL(url).port), "127.0.0.1");
    socket.setTimeout(timeoutMs, () => socket.destroy(new Error("silence")));
    socket.once("error", reject);
    socket.once("close", () => reject(new Error("closed")));
    socket.once("data", (data) => {
      resolve(String(data));
      socket.destroy();
    });
  });

describe("a broker", () => {
  let broker: Broker;
  beforeAll(async () => {
    broker = await startBroker();
  });
  afterAll(() => broker.stop());

  test("comes back at the same address after a crash and after a restart", async () => {
    expect(await greeting(broker.url)).toContain('"jetstream":true');
    await broker.kill();
    await expect(greeting(broker.url)).rejects.toThrow();
    await broker.restart();
    expect(await greeting(broker.url)).toContain("INFO");
    await broker.restart();
    expect(await greeting(broker.url)).toContain("INFO");
  });

  test("is silent while frozen", async () => {
    await broker.freeze();
    await expect(greeting(broker.url, 200)).rejects.toThrow("silence");
    await broker.thaw();
    expect(await eventually(() => greeting(broker.url))).toContain("INFO");
  });
});

describe("a database", () => {
  test("is one's own and is gone after drop", async () => {
    const one = await freshDatabase();
    const other = await freshDatabase();
    expect(one.name).not.toBe(other.name);
    await one.client.db(one.name).collection("things").insertOne({ n: 1 });
    expect(await other.client.db(other.name).collection("things").countDocuments()).toBe(0);
    await one.drop();
    expect(await other.client.db(one.name).collection("things").countDocuments()).toBe(0);
    await other.drop();
  });

  test("can be taken away and given back by a proxy", async () => {
    const database = await freshDatabase();
    const proxy = await faultyProxy(database.url);
    const client = new MongoClient(proxy.url, { serverSelectionTimeoutMS: 300 });
    const ping = () => client.db(database.name).command({ ping: 1 });
    await eventually(ping);
    await proxy.cut();
    await expect(ping()).rejects.toThrow();
    await proxy.heal();
    await eventually(ping);
    await client.close();
    await proxy.stop();
    await database.drop();
  });
});

test("the leak check sees a server that was left open", async () => {
  const check = leakCheck({ timeoutMs: 1_000 });
  await check();
  const proxy = await faultyProxy("nats://127.0.0.1:1");
  await expect(check()).rejects.toThrow("TCPServerWrap");
  await proxy.stop();
  await check();
});
