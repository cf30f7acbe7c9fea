import { defineConfig } from "vitest/config";

const conditions = ["@herald/source"];

/** What attacks a whole system: too long for each change, so a command of its own (`npm run test:hostile`). */
export default defineConfig({
  resolve: { conditions },
  ssr: { resolve: { conditions } },
  environments: { __vitest__: { resolve: { conditions } } },
  test: {
    name: "hostile",
    root: import.meta.dirname,
    include: ["*.hostile.test.ts"],
    globalSetup: ["../../packages/testing/src/global-setup.ts"],
    reporters: ["default", "./table.reporter.ts"],
    testTimeout: 3_600_000, // a thousand examples of each operation take their time
    hookTimeout: 180_000,
    fileParallelism: false, // each file is a whole system, which needs the machine
  },
});
