import { defineConfig } from "vitest/config";

const conditions = ["@herald/source"];
const resolve = { conditions };
const ssr = { resolve: { conditions } };
/** Where vitest runs the global setup; it does not take over what is set for the tests. */
const environments = { __vitest__: { resolve: { conditions } } };
const globalSetup = ["packages/testing/src/global-setup.ts"];

const report = process.env.HERALD_TEST_REPORT;
/** Where machines are shared a second try tells a stall from a fault; the screen names the test that needed one. */
const retry = process.env.CI ? 1 : 0;

/** The suffix of a test file decides its tier: pure, on a real broker and database, or the whole system over HTTP. */
export default defineConfig({
  test: {
    // Whoever counts the results reads the runner's own report, not its screen.
    reporters: report ? ["default", ["json", { outputFile: report }]] : ["default"],
    projects: [
      {
        resolve,
        ssr,
        test: {
          name: "unit",
          include: ["{packages,services}/*/{src,test}/**/*.unit.test.ts", "bench/src/**/*.unit.test.ts"],
          retry,
          testTimeout: 30_000, // properties tried on hundreds of values, on a machine with other work
        },
      },
      {
        resolve,
        ssr,
        environments,
        test: {
          name: "int",
          retry,
          include: ["{packages,services}/*/{src,test}/**/*.int.test.ts"],
          globalSetup,
          testTimeout: 30_000, // a dependency that is away and comes back takes its retries with it
          hookTimeout: 60_000,
          maxWorkers: 2, // each file has its own broker, and the database has two cores on most machines
          fileParallelism: !process.env.HERALD_NATS_URL, // one broker for all files, and streams have fixed names
        },
      },
      {
        resolve,
        ssr,
        environments,
        test: {
          name: "e2e",
          retry,
          include: ["{e2e,packages/*/test}/**/*.e2e.test.ts"],
          globalSetup,
          testTimeout: 120_000,
          hookTimeout: 180_000, // may be the first to fetch the programs
          maxWorkers: 2, // each file is a whole system, and waits for most of its time
        },
      },
    ],
  },
});
