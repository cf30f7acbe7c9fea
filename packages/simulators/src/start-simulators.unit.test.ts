import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, it } from "vitest";
import { connectApns } from "../test/apns-client.ts";
import { startSimulators } from "./start-simulators.ts";

it("closes every connection and port when it stops, even during requests", async () => {
  const simulators = await startSimulators();
  simulators.script([{ delayMs: 60_000 }]);
  const client = await connectApns(simulators);
  const waiting = client.send();
  const events = await fetch(`${simulators.control.url}/events`);
  await simulators.stop();
  expect(await waiting).toMatchObject({ status: 0 });
  await expect(events.text()).rejects.toThrow();
  await expect(fetch(simulators.control.url)).rejects.toThrow();
  client.close();
});

it("fails to start when one port is taken", async () => {
  const taken = createServer().listen(0, "127.0.0.1");
  await new Promise((resolve) => taken.once("listening", resolve));
  const { port } = taken.address() as AddressInfo;
  await expect(startSimulators({ ports: { control: port } })).rejects.toThrow(/EADDRINUSE/);
  taken.close();
});

it("serves under the name it is given", async () => {
  const simulators = await startSimulators({ publicHost: "localhost" });
  expect(simulators.apns.url).toMatch(/^https:\/\/localhost:\d+$/);
  const client = await connectApns(simulators);
  expect(await client.send()).toMatchObject({ status: 200 });
  client.close();
  await simulators.stop();
});
