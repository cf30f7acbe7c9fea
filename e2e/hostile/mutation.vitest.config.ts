import { defineConfig } from "vitest/config";

const conditions = ["@herald/source"];

/** The pure tests alone: each mutant is held against those that reach it, which int tests would take an hour for. */
export default defineConfig({
  resolve: { conditions },
  ssr: { resolve: { conditions } },
  test: { include: ["{packages,services}/*/src/**/*.unit.test.ts"], testTimeout: 60_000 },
});
