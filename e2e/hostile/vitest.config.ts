import { basename } from "node:path";
import { defineConfig } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";
import { scale } from "./scale.ts";

const conditions = ["@herald/source"];
const report = process.env.HERALD_TEST_REPORT;

/**
 * Files that start a system of their own, for its settings, because they break or fill it, or because they search all of it. The longest
 * begin first, so that no other worker waits for them at the end.
 */
const own = [
  "schemathesis",
  "requests",
  "kept",
  "messages",
  "provider-answers",
  "devices",
  "access",
  "secrets",
  "operator-floods",
  "installations",
  "queues",
  "ssrf",
  "cancel",
  "keys",
  "facets",
];
/** Files that share the system of their worker. They come last, because a worker stops its system before it runs a file of the others. */
const sharing = [
  "http",
  ...["projects", "operators", "hands", "names", "hijack", "readers", "sign-in", "unreachable"],
  ...["project-files", "redirects", "preferences", "activities", "channels", "templates", "rendering"],
  // They store thousands of devices, which those above would have to read.
  ...[
    "imports",
    "content",
    "recipients",
    "pause",
    "escalation",
    "neighbour",
    "receipts",
    "shares",
    "batch",
    "rooms",
    "sends",
  ],
];
const suffix = ".hostile.test.ts";
const filesOf = (names: readonly string[]) => names.map((name) => `${name}${suffix}`);
const order = filesOf([...own, ...sharing]);

class AsListed extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const placeOf = ({ moduleId }: TestSpecification) => order.indexOf(basename(moduleId));
    return files.toSorted((a, b) => placeOf(a) - placeOf(b));
  }
}

const shared = {
  resolve: { conditions },
  ssr: { resolve: { conditions } },
  environments: { __vitest__: { resolve: { conditions } } },
};
const test = {
  root: import.meta.dirname,
  isolate: false, // what a file imports is loaded once for each worker
  maxWorkers: 3, // of two cores one waits half of the time: for answers, for retries, for timeouts
  globalSetup: ["../../tools/testing/src/global-setup.ts"],
  testTimeout: scale(3_600_000, 1_200_000), // a thousand examples of each operation take their time
  hookTimeout: 300_000, // longer than a system has to start
  chaiConfig: { truncateThreshold: 1_000 }, // what was wrong is a list, which a report must name
};

/** Attacks on whole systems. They take too long for each change, so they have their own command (`npm run test:hostile`). */
export default defineConfig({
  test: {
    root: import.meta.dirname,
    sequence: { sequencer: AsListed },
    reporters: [
      "default",
      "./table.reporter.ts",
      ...(report ? [["json", { outputFile: report }] as ["json", object]] : []),
    ],
    projects: [
      {
        ...shared,
        test: { ...test, name: "hostile", include: [`*${suffix}`], exclude: filesOf(sharing) },
      },
      {
        ...shared,
        test: { ...test, name: "hostile-sharing", include: filesOf(sharing) },
      },
    ],
  },
});
