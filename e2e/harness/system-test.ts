import { test as plain } from "vitest";
import { type System, type SystemOptions, startSystem } from "./system.ts";

/** `test` for files that leave their system as it is: those of one worker share it, one after another. `afterFile` runs after each. */
export const systemTest = (options: SystemOptions, afterFile: (system: System) => Promise<void>) =>
  plain.extend<{ system: System; nothingLeft: undefined }>({
    system: [
      // biome-ignore lint/correctness/noEmptyPattern: vitest reads from the pattern which fixtures this one needs
      async ({}, use) => {
        const system = await startSystem(options);
        try {
          await use(system);
        } finally {
          await system.stop();
        }
      },
      { scope: "worker" },
    ],
    nothingLeft: [
      async ({ system }, use) => {
        await use(undefined);
        // One that stayed would apply to the pushes of the next file.
        await system.simulators.script([]);
        await afterFile(system);
      },
      { scope: "file", auto: true },
    ],
  });
