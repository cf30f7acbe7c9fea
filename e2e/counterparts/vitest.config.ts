import { suite } from "../suite.ts";

/** Programs of others, as they are: what they answer is not what a simulator was told. */
export default suite(import.meta.dirname, "counterparts", {
  globalSetup: ["../../tools/testing/src/global-setup.ts"],
  testTimeout: 600_000,
  hookTimeout: 3_600_000, // the first run downloads and compiles them
});
