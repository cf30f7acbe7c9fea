import { suite } from "../suite.ts";

/** Tests in a real Chromium: each file starts a whole system and a browser. */
export default suite(import.meta.dirname, "browser", {
  globalSetup: ["../../packages/testing/src/global-setup.ts"],
  expect: { poll: { timeout: 20_000 } }, // as long as `eventually` waits
  hookTimeout: 600_000, // the first run may download programs such as Chromium
});
