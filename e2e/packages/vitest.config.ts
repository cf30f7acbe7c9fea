import { suite } from "../suite.ts";

/** What `npm run release` builds, tried by someone who has only that. */
export default suite(import.meta.dirname, "packages", {
  globalSetup: ["../../tools/testing/src/global-setup.ts", "./build-release.ts"],
  testTimeout: 600_000, // compilers and package managers, beside other suites
  hookTimeout: 600_000, // the first run fetches the tools
  fileParallelism: true,
  maxWorkers: 2, // npm takes one core
});
