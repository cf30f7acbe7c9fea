import { defineConfig } from "vitest/config";

const resolve = { conditions: ["@herald/source"] };
const ssr = { resolve: { conditions: ["@herald/source"] } };

/** The suffix of a test file decides its tier: pure, on a real broker and database, or the whole system over HTTP. */
export default defineConfig({
  test: {
    reporters: ["default"],
    projects: [
      {
        resolve,
        ssr,
        test: { name: "unit", include: ["{packages,services}/*/src/**/*.unit.test.ts"] },
      },
    ],
  },
});
