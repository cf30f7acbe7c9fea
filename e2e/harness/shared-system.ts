import { test as plain } from "vitest";
import { type System, startSystem } from "./system.ts";

const env = {
  HERALD_DISPATCH_REQUEST_TIMEOUT: "5s", // some wait for it
  HERALD_DISPATCH_IN_FLIGHT: "100", // a broadcast to few lasts long enough to be cancelled in its middle
};

/**
 * For a file that leaves the system as it was: one for all such files that run in the same worker, one after another. What is asserted
 * about all of it, such as what arrived or what was logged, is asserted about the file's own projects or its own time.
 */
export const test = plain.extend<{ system: System }>({
  system: [
    // biome-ignore lint/correctness/noEmptyPattern: vitest reads from the pattern which fixtures this one needs
    async ({}, use) => {
      const system = await startSystem({ env });
      try {
        await use(system);
      } finally {
        await system.stop();
      }
    },
    { scope: "worker" },
  ],
});
