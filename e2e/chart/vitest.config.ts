import { defineConfig } from "vitest/config";

const conditions = ["@herald/source"];
const report = process.env.HERALD_TEST_REPORT;

/** The Helm chart. `npm run test:chart` is a separate command, because it compiles Helm, and with a cluster an API server too. */
export default defineConfig({
  resolve: { conditions },
  ssr: { resolve: { conditions } },
  test: {
    name: "chart",
    root: import.meta.dirname,
    include: ["*.chart.test.ts"],
    reporters: report ? ["default", ["json", { outputFile: report }]] : ["default"],
    testTimeout: 120_000,
    hookTimeout: 3_600_000, // the first run compiles the programs
    fileParallelism: false, // each file would wait for the same programs
  },
});
