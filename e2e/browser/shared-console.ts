import type { System } from "../harness/system.ts";
import { type ConsoleBrowser, startConsoleBrowser } from "./console-page.ts";
import { test as withSystem } from "./shared-system.ts";

/** The shared system, and a browser for its console that the files of one worker share too. */
export type SharedConsole = { readonly system: System; readonly browser: ConsoleBrowser };

export const test = withSystem.extend<{ herald: SharedConsole; noPages: undefined }>({
  herald: [
    async ({ system }, use) => {
      const browser = await startConsoleBrowser(system);
      try {
        await use({ system, browser });
      } finally {
        await browser.close();
      }
    },
    { scope: "worker" },
  ],
  noPages: [
    async ({ herald }, use) => {
      await use(undefined);
      await herald.browser.closePages();
    },
    { auto: true },
  ],
});
