import { join } from "node:path";
import { defaultExclude, defineConfig } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";

const conditions = ["@herald/source"];
const resolve = { conditions };
const ssr = { resolve: { conditions } };
/** Where vitest runs the global setup; it does not take over what is set for the tests. */
const environments = { __vitest__: { resolve: { conditions } } };
const globalSetup = ["tools/testing/src/global-setup.ts"];

const report = process.env.HERALD_TEST_REPORT;
/** Workers and the services that they start read the same files again and again: half of what a start costs is compiling them. */
process.env.NODE_COMPILE_CACHE ??= join(import.meta.dirname, "node_modules/.cache/node-compile");

/** They put the timers of the process aside and count them, so that what another file left running would be theirs. */
const fakesTimers = [
  "packages/bus/src/progress-signals.unit.test.ts",
  "packages/http2-client/src/http2/request-queue.unit.test.ts",
  "packages/kit/src/group-commit.unit.test.ts",
  "services/gateway/src/sending/group-reports.unit.test.ts",
];
const expect = { poll: { timeout: 20_000 } }; // as long as `eventually` waits
/** Properties are tried on thousands of values, on a machine with other work. */
const unit = { testTimeout: 60_000, hookTimeout: 60_000, expect };

const wholeSystem = {
  testTimeout: 120_000,
  hookTimeout: 300_000, // may be the first to fetch the programs, and longer than a system has to start
};

/** They wait for timers, or have a system of their own. Where one came last, its worker would run alone at the end. */
const longest = /\/(own-system\.e2e|(webhooks|every-answer|provider-answers)\.scenario)\.test\.ts$/;

class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    return [true, false].flatMap((first) => sorted.filter(({ moduleId }) => longest.test(moduleId) === first));
  }
}

/**
 * The suffix of a test file decides its tier: pure, on a real broker and database, the whole system over HTTP, or a scenario that takes
 * long by nature, which `npm test` leaves to `npm run test:scenarios`.
 */
export default defineConfig({
  test: {
    // CI reads the runner's own report, not its screen.
    reporters: report ? ["default", ["json", { outputFile: report }]] : ["default"],
    isolate: false, // what a file imports is loaded once for each worker; nothing of ours keeps state in a module that a test changes
    sequence: { sequencer: LongestFirst },
    maxWorkers: 3, // of two cores one waits half of the time: for answers, for what is unavailable, for timeouts
    projects: [
      {
        resolve,
        ssr,
        test: {
          name: "unit",
          include: [
            "{packages,services,tools}/*/{src,test}/**/*.unit.test.ts",
            "{bench/src,e2e,infra}/**/*.unit.test.ts",
          ],
          exclude: [...defaultExclude, ...fakesTimers],
          ...unit,
        },
      },
      {
        resolve,
        ssr,
        test: { name: "unit-isolated", include: fakesTimers, isolate: true, ...unit },
      },
      {
        resolve,
        ssr,
        test: {
          name: "unit-through-proxy",
          include: ["packages/http2-client/test/*.unit.test.ts"],
          env: { HERALD_TEST_THROUGH_PROXY: "1" },
          ...unit,
        },
      },
      {
        resolve,
        ssr,
        environments,
        test: {
          name: "int",
          include: ["{packages,services,tools}/*/{src,test}/**/*.int.test.ts"],
          globalSetup,
          expect,
          testTimeout: 60_000, // a dependency that is unavailable and comes back takes its retries with it
          hookTimeout: 60_000,
          fileParallelism: !process.env.HERALD_NATS_URL, // one broker for all files, and streams have fixed names
        },
      },
      {
        resolve,
        ssr,
        environments,
        test: {
          name: "e2e",
          include: ["e2e/**/*.e2e.test.ts"],
          globalSetup,
          expect,
          ...wholeSystem,
        },
      },
      {
        resolve,
        ssr,
        environments,
        test: {
          name: "scenarios",
          include: ["{e2e,bench/src,{packages,services}/*/test}/**/*.scenario.test.ts"],
          globalSetup,
          expect,
          ...wholeSystem,
        },
      },
    ],
  },
});
