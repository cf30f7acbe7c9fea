import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { expect, test } from "vitest";
import { allPorts, expectFree, freePortsEnvironment, readPorts } from "./ports.ts";

test("HERALD_PORT moves every part but broker and database, and 0 takes a free one", async () => {
  expect(await readPorts({ HERALD_PORT: "", HERALD_NATS_PORT: "14222" })).toMatchObject({
    gateway: 8080,
    registry: 8081,
    control: 8090,
    gatewayMetrics: 9080,
    nats: 14222,
  });
  const ports = await readPorts({ HERALD_PORT: "18080", HERALD_NATS_PORT: "0", HERALD_MONGO_PORT: "" });
  expect(ports).toMatchObject({
    gateway: 18080,
    registry: 18081,
    example: 18084,
    analyticsMetrics: 19083,
    mongo: 37017,
  });
  expect(ports.nats).toBeGreaterThan(0);
  const free = await readPorts({ HERALD_PORT: "0" });
  for (const one of [ports, free]) expect(new Set(Object.values(one)).size).toBe(allPorts.length);
});

test("all that is wrong with the variables is said at once", async () => {
  await expect(readPorts({ HERALD_MONGO_PORT: "8081" })).rejects.toThrow(
    "HERALD_MONGO_PORT: another part of Herald has port 8081 already",
  );
  await expect(readPorts({ HERALD_PORT: "65000", HERALD_NATS_PORT: "70000" })).rejects.toThrow(
    "HERALD_PORT is 65000: a port is a whole number from 0 (a free one) to 65535\nHERALD_NATS_PORT is 70000",
  );
});

test("a taken port is a message with the variable's name, and is waited for while a previous start ends", async () => {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const ports = { ...(await readPorts(freePortsEnvironment)), registry: (server.address() as AddressInfo).port };
  await expect(expectFree(ports, ["registry", "nats"], 0)).rejects.toThrow(
    `Port ${ports.registry} (registry) is taken: set HERALD_PORT to another`,
  );
  const waiting = expectFree(ports, ["registry", "nats"], 10_000);
  server.close();
  await waiting;
});
