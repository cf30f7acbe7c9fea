import { systemTest } from "./system-test.ts";

const env = {
  HERALD_DISPATCH_REQUEST_TIMEOUT: "5s", // some tests wait for this timeout
  HERALD_DISPATCH_IN_FLIGHT: "100", // slow enough to cancel a small broadcast halfway
};

/**
 * A system for test files that leave it unchanged. Assertions about the whole system, such as pushes or log lines, must be limited to the
 * file's own projects or its own time. The next file would read all pushes of this one at each look, so they are forgotten.
 */
export const test = systemTest({ env }, (system) => system.simulators.forget());
