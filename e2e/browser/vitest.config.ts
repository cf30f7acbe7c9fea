import { defineConfig } from "vitest/config";

const conditions = ["@herald/source"];
const report = process.env.HERALD_TEST_REPORT;

/** What runs in a real Chromium (`npm run test:browser`): a command of its own, because it needs one, and the machine. */
export default defineConfig({
  resolve: { conditions },
  ssr: { resolve: { conditions } },
  environments: { __vitest__: { resolve: { conditions } } },
  test: {
    name: "browser",
    root: import.meta.dirname,
    include: ["*.browser.test.ts"],
    globalSetup: ["../../packages/testing/src/global-setup.ts"],
    reporters: report ? ["default", ["json", { outputFile: report }]] : ["default"],
    testTimeout: 60_000,
    hookTimeout: 600_000, // may be the first to fetch the programs, Chromium among them
    fileParallelism: false, // each file is a whole system and a browser
  },
});
