import { defineConfig } from "vitest/config";

const conditions = ["@herald/source"];
const report = process.env.HERALD_TEST_REPORT;

/** What `npm run release` builds, tried by someone who has only that. `npm run test:packages` is a separate command: it fetches tools. */
export default defineConfig({
  resolve: { conditions },
  ssr: { resolve: { conditions } },
  environments: { __vitest__: { resolve: { conditions } } },
  test: {
    name: "packages",
    root: import.meta.dirname,
    include: ["*.packages.test.ts"],
    globalSetup: ["../../packages/testing/src/global-setup.ts", "./build-release.ts"],
    reporters: report ? ["default", ["json", { outputFile: report }]] : ["default"],
    testTimeout: 120_000,
    hookTimeout: 600_000, // the first run fetches the tools
    fileParallelism: false,
  },
});
