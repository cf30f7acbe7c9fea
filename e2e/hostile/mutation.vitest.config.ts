import { defineConfig } from "vitest/config";

const conditions = ["@herald/source"];

/** Only unit tests: each mutant runs against the tests that cover it, which would take an hour with int tests. */
export default defineConfig({
  resolve: { conditions },
  ssr: { resolve: { conditions } },
  test: {
    include: ["{packages,services}/*/src/**/*.unit.test.ts", "tools/docs/src/api/*.unit.test.ts"],
    testTimeout: 60_000,
  },
});
