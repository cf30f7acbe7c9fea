import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { expect, test } from "vitest";
import { allPorts, expectFree, readPorts } from "./ports.ts";

test("ports are the defaults unless a variable moves them, and 0 takes a free one", async () => {
  const ports = await readPorts({ HERALD_GATEWAY_PORT: "8888", HERALD_NATS_PORT: "0", HERALD_MONGO_PORT: "" });
  expect(ports).toMatchObject({ gateway: 8888, registry: 8081, mongo: 37017 });
  expect(ports.nats).toBeGreaterThan(0);
  expect(new Set(Object.values(ports)).size).toBe(allPorts.length);
});

test("all that is wrong with the variables is said at once", async () => {
  await expect(
    readPorts({ HERALD_GATEWAY_PORT: "http", HERALD_NATS_PORT: "70000", HERALD_DISPATCH_PORT: "8081" }),
  ).rejects.toThrow(`HERALD_DISPATCH_PORT: another part of Herald has port 8081 already`);
  await expect(readPorts({ HERALD_GATEWAY_PORT: "http", HERALD_NATS_PORT: "70000" })).rejects.toThrow(
    "HERALD_GATEWAY_PORT is http: a port is a whole number from 0 (a free one) to 65535\nHERALD_NATS_PORT is 70000",
  );
});

test("a taken port is a message with the variable's name, and is waited for while a previous start ends", async () => {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const ports = await readPorts({
    HERALD_GATEWAY_PORT: String((server.address() as AddressInfo).port),
    HERALD_NATS_PORT: "0",
  });
  await expect(expectFree(ports, ["gateway", "nats"], 0)).rejects.toThrow(
    `Port ${ports.gateway} (gateway) is taken: set HERALD_GATEWAY_PORT to another`,
  );
  const waiting = expectFree(ports, ["gateway", "nats"], 10_000);
  server.close();
  await waiting;
});
