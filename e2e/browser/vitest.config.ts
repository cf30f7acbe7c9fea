import { defineConfig } from "vitest/config";

const conditions = ["@herald/source"];
const report = process.env.HERALD_TEST_REPORT;

/** Tests in a real Chromium. `npm run test:browser` is a separate command, because it needs Chromium and the whole machine. */
export default defineConfig({
  resolve: { conditions },
  ssr: { resolve: { conditions } },
  environments: { __vitest__: { resolve: { conditions } } },
  test: {
    name: "browser",
    root: import.meta.dirname,
    include: ["*.browser.test.ts"],
    globalSetup: ["../../packages/testing/src/global-setup.ts"],
    reporters: report ? ["default", ["json", { outputFile: report }]] : ["default"],
    testTimeout: 120_000,
    expect: { poll: { timeout: 20_000 } }, // as long as `eventually` waits
    hookTimeout: 600_000, // the first run may download programs such as Chromium
    fileParallelism: false, // each file starts a whole system and a browser
  },
});
