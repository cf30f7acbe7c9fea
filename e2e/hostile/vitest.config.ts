import { defineConfig } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";
import { scale } from "./scale.ts";

const conditions = ["@herald/source"];
const report = process.env.HERALD_TEST_REPORT;

/** Files that assert latency, CPU time or memory run alone, after the others, which run side by side. */
const measuring = [
  "access",
  "batch",
  "content",
  "facets",
  "hijack",
  "imports",
  "installations",
  "neighbour",
  "operator-floods",
  "queues",
  "recipients",
  "requests",
  "shares",
];
const measuringFiles = measuring.map((name) => `${name}.hostile.test.ts`);

/** They begin first, so that no other worker waits for them at the end. */
const longest = /\/(schemathesis|kept|provider-answers)\./;

class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    return [true, false].flatMap((first) => sorted.filter(({ moduleId }) => longest.test(moduleId) === first));
  }
}

const shared = {
  resolve: { conditions },
  ssr: { resolve: { conditions } },
  environments: { __vitest__: { resolve: { conditions } } },
};
const test = {
  root: import.meta.dirname,
  globalSetup: ["../../packages/testing/src/global-setup.ts"],
  testTimeout: scale(3_600_000, 600_000), // a thousand examples of each operation take their time
  hookTimeout: 180_000,
  chaiConfig: { truncateThreshold: 1_000 }, // what was wrong is a list, which a report must name
};

/** Attacks on whole systems. They take too long for each change, so they have their own command (`npm run test:hostile`). */
export default defineConfig({
  test: {
    root: import.meta.dirname,
    sequence: { sequencer: LongestFirst },
    reporters: [
      "default",
      "./table.reporter.ts",
      ...(report ? [["json", { outputFile: report }] as ["json", object]] : []),
    ],
    projects: [
      {
        ...shared,
        test: {
          ...test,
          name: "hostile",
          include: ["*.hostile.test.ts"],
          exclude: measuringFiles,
          maxWorkers: 3, // each file is a whole system, but of two cores one would wait half of the time
          sequence: { groupOrder: 0 },
        },
      },
      {
        ...shared,
        test: {
          ...test,
          name: "hostile-measuring",
          include: measuringFiles,
          fileParallelism: false,
          sequence: { groupOrder: 1 },
        },
      },
    ],
  },
});
