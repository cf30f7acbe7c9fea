import { suite } from "../suite.ts";

/** Tests in a real Chromium. The files of a worker share a whole system and, for the console, a browser. */
export default suite(import.meta.dirname, "browser", {
  globalSetup: ["../../tools/testing/src/global-setup.ts"],
  expect: { poll: { timeout: 20_000 } }, // as long as `eventually` waits
  hookTimeout: 600_000, // the first run may download programs such as Chromium
  isolate: false, // a worker runs many files
  fileParallelism: true,
  maxWorkers: 2, // pages wait for the next read of Herald, in which a second file uses the cores
});
