import { defineConfig, type ViteUserConfig } from "vitest/config";

const conditions = ["@herald/source"];
const report = process.env.HERALD_TEST_REPORT;

/**
 * The configuration of a suite with a command of its own, `npm run test:<name>`, because it needs programs that other tests do not need.
 * Its files end in `.<name>.test.ts`, and run one after another. CI reads the runner's own report, not its screen.
 */
export const suite = (root: string, name: string, test: ViteUserConfig["test"]) =>
  defineConfig({
    resolve: { conditions },
    ssr: { resolve: { conditions } },
    environments: { __vitest__: { resolve: { conditions } } },
    test: {
      name,
      root,
      include: [`*.${name}.test.ts`],
      reporters: report ? ["default", ["json", { outputFile: report }]] : ["default"],
      testTimeout: 120_000,
      fileParallelism: false,
      ...test,
    },
  });
