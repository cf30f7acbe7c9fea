import { test as plain } from "vitest";
import { type System, startSystem } from "./system.ts";

const env = {
  HERALD_DISPATCH_REQUEST_TIMEOUT: "5s", // some tests wait for this timeout
  HERALD_DISPATCH_IN_FLIGHT: "100", // slow enough to cancel a small broadcast halfway
};

/**
 * A system for test files that leave it unchanged: the files of one worker share it, one after another. Assertions about the whole
 * system, such as pushes or log lines, must be limited to the file's own projects or its own time.
 */
export const test = plain.extend<{ system: System; nothingLeft: undefined }>({
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
  /** A script that stayed would apply to the pushes of the next file, which would also read all pushes of this one at each look. */
  nothingLeft: [
    async ({ system }, use) => {
      await use(undefined);
      await system.simulators.script([]);
      await system.simulators.forget();
    },
    { scope: "file", auto: true },
  ],
});
