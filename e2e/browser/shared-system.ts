import { test as plain } from "vitest";
import { type System, startSystem } from "../harness/system.ts";

/**
 * A system with the console for test files that leave it as it is: the files of one worker share it, one after another. Assertions about
 * pushes, rows or devices must be limited to the file's own projects, or to the users and devices that the file made.
 */
export const test = plain.extend<{ system: System; noScript: undefined }>({
  system: [
    // biome-ignore lint/correctness/noEmptyPattern: vitest reads from the pattern which fixtures this one needs
    async ({}, use) => {
      const system = await startSystem({ console: true });
      try {
        await use(system);
      } finally {
        await system.stop();
      }
    },
    { scope: "worker" },
  ],
  /** A script that stayed would apply to the pushes of the next file. */
  noScript: [
    async ({ system }, use) => {
      await use(undefined);
      await system.simulators.script([]);
    },
    { scope: "file", auto: true },
  ],
});
