import { defineConfig } from "vitest/config";

const conditions = ["@herald/source"];
const report = process.env.HERALD_TEST_REPORT;

/** The kit for Android, built and tested by Maven. `npm run test:android` is a separate command: it needs Java, and fetches Android's code. */
export default defineConfig({
  resolve: { conditions },
  ssr: { resolve: { conditions } },
  environments: { __vitest__: { resolve: { conditions } } },
  test: {
    name: "android",
    root: import.meta.dirname,
    include: ["*.android.test.ts"],
    globalSetup: ["../../tools/testing/src/global-setup.ts"],
    reporters: report ? ["default", ["json", { outputFile: report }]] : ["default"],
    testTimeout: 900_000, // the first run fetches 300 MB
    hookTimeout: 600_000,
  },
});
