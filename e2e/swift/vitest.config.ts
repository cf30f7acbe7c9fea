import { defineConfig } from "vitest/config";

const conditions = ["@herald/source"];
const report = process.env.HERALD_TEST_REPORT;

/** The kit for iPhones. `npm run test:swift` is a separate command, because it needs a Swift compiler. */
export default defineConfig({
  resolve: { conditions },
  ssr: { resolve: { conditions } },
  environments: { __vitest__: { resolve: { conditions } } },
  test: {
    name: "swift",
    root: import.meta.dirname,
    include: ["*.swift.test.ts"],
    globalSetup: ["../../packages/testing/src/global-setup.ts"],
    reporters: report ? ["default", ["json", { outputFile: report }]] : ["default"],
    testTimeout: 600_000, // compiling takes a minute on two cores
    hookTimeout: 600_000, // the first run fetches the compiler
  },
});
