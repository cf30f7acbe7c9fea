import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { closeBus } from "@herald/bus";
import { eventually } from "@herald/testing";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type BusTest, startBusTest } from "./fixture.ts";
import { connectAs } from "./nats-login.ts";

let t: BusTest;
beforeAll(async () => {
  t = await startBusTest();
});
afterAll(() => t.stop());

test("a broker that no longer accepts the password is logged once, however often it refuses", async ({ skip }) => {
  const { changePasswords, dataDir } = t.broker;
  if (changePasswords === undefined || dataDir === undefined) return skip("the broker is not a process of ours");
  const bus = await connectAs(t, "registry");
  await changePasswords();
  await eventually(async () => {
    const said = await readFile(join(dataDir, "nats-server.log"), "utf8");
    expect(said.match(/authentication error/g)?.length ?? 0).toBeGreaterThan(3);
  });
  const errors = t.logged.flatMap(({ level, msg }) => (level === "error" ? [msg] : []));
  expect(errors.filter((msg) => msg.startsWith('NATS refuses the user "herald-registry"'))).toHaveLength(1);
  expect(errors.filter((msg) => !msg.startsWith("NATS refuses"))).toEqual([]);
  await closeBus(bus);
});
