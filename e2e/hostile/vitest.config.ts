import { defineConfig } from "vitest/config";

const conditions = ["@herald/source"];

/** Attacks on a whole system. They take too long for each change, so they have their own command (`npm run test:hostile`). */
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
