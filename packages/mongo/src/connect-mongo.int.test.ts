import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { createServer } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { createLogger, inSpan, startTelemetry } from "@herald/kit";
import { type FreshDatabase, freshDatabase } from "@herald/testing";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { connectMongo } from "./connect-mongo.ts";

type Sent = {
  name: string;
  kind: number;
  spanId: string;
  parentSpanId?: string;
  attributes: { key: string; value: { stringValue?: string } }[];
};

let database: FreshDatabase;
beforeAll(async () => {
  database = await freshDatabase();
});
afterAll(() => database.drop());

test("a command under a recorded span has a span of its own, with the conventional attributes and no content", async () => {
  const spans: Sent[] = [];
  let bodies = "";
  const collector = createServer(async (request, response) => {
    let text = "";
    for await (const chunk of request) text += chunk;
    bodies += text;
    for (const { scopeSpans } of JSON.parse(text).resourceSpans)
      for (const scope of scopeSpans) spans.push(...scope.spans);
    response.setHeader("content-type", "application/json").end("{}");
  });
  await new Promise<void>((resolve) => collector.listen(0, "127.0.0.1", resolve));
  vi.stubEnv("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json");
  const telemetry = await startTelemetry({
    service: "test",
    metricsHost: "127.0.0.1",
    metricsPort: 0,
    otlpEndpoint: `http://127.0.0.1:${(collector.address() as AddressInfo).port}`,
  });
  const log = createLogger({ service: "test", level: "silent" });
  const mongo = connectMongo({ url: database.url, database: database.name, appName: "test", log });
  const rows = mongo.db.collection<{ _id: string }>("rows");
  await rows.insertOne({ _id: "outside" });
  await inSpan("work", {}, async () => {
    await rows.insertOne({ _id: "planted" });
    await rows.findOne({ _id: "planted" });
    await mongo.db.command({ noSuchCommand: 1 }).catch(() => undefined);
  });
  await mongo.close();
  await telemetry.stop();
  collector.closeAllConnections();
  collector.close();
  vi.unstubAllEnvs();

  const work = spans.find(({ name }) => name === "work");
  const commands = spans.filter(({ name }) => name !== "work");
  const attributes = (operation: string, more: Record<string, string>) => ({
    "db.system.name": "mongodb",
    "db.namespace": database.name,
    "db.operation.name": operation,
    ...more,
  });
  expect(
    commands.map(({ name, attributes }) => [
      name,
      Object.fromEntries(attributes.map(({ key, value }) => [key, value.stringValue])),
    ]),
  ).toEqual([
    ["insert rows", attributes("insert", { "db.collection.name": "rows" })],
    ["find rows", attributes("find", { "db.collection.name": "rows" })],
    ["noSuchCommand", attributes("noSuchCommand", { "error.type": expect.any(String) })],
  ]);
  for (const { kind, parentSpanId } of commands) expect([kind, parentSpanId]).toEqual([3, work?.spanId]);
  expect(bodies).not.toContain("planted");
});

test("a command that meets a connection which is being closed fails, instead of waiting forever", async () => {
  const sockets: Socket[] = [];
  const note = (message: unknown) => sockets.push((message as { socket: Socket }).socket);
  subscribe("net.client.socket", note);
  const log = createLogger({ service: "test", level: "silent" });
  const mongo = connectMongo({ url: database.url, database: database.name, appName: "test", log });
  const insert = () => mongo.db.collection("rows").insertOne({});
  await insert();
  unsubscribe("net.client.socket", note);

  // They are destroyed, and emit "close" when this part of the event loop ends: the command is written in between.
  for (const socket of sockets) socket.destroy();
  await expect(insert()).rejects.toThrow(/closed/);
  await insert();
  await mongo.close();
});
