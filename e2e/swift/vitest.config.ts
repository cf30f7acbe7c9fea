import { suite } from "../suite.ts";

/** The kit for iPhones, compiled and run against a whole system. */
export default suite(import.meta.dirname, "swift", {
  globalSetup: ["../../tools/testing/src/global-setup.ts"],
  testTimeout: 1_200_000, // compiling takes a minute of two cores
});
