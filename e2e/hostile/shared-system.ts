import { expect } from "vitest";
import { systemTest } from "../harness/system-test.ts";
import { overComposeLimit } from "./memory.ts";

const env = {
  // All requests come from one address, and rate limits would hide the tested answers.
  HERALD_GATEWAY_LIMIT_FAILURES: "1000000",
  HERALD_GATEWAY_LIMIT_CLIENTS: "1000000",
  HERALD_DISPATCH_REQUEST_TIMEOUT: "5s", // some attacks wait for this timeout
};

/**
 * A system for attacks on it as it is. An attack asserts only about its own projects, and leaves no work behind that would slow the next
 * one down. What needs other settings, breaks something or fills a queue starts its own.
 */
export const test = systemTest({ env }, async (system) => {
  const project = await system.project("Afterwards");
  const { device } = await project.register();
  const { id } = await project.send({ title: "Ordinary", targets: [device.id] });
  expect((await project.final(id, 60_000)).counts.accepted).toBe(1);
  await system.simulators.forget(); // the next file would read them again and again
  // The supervisor restarts a crashed service, so only the log may show the crash.
  const [crash] = system.logs.crashes();
  if (crash) throw new Error(`${crash.part} crashed: ${crash.line}`);
  expect(await overComposeLimit(system)).toEqual([]);
});
