import { systemTest } from "../harness/system-test.ts";

/**
 * A system with the console for test files that leave it as it is. Assertions about pushes, rows or devices must be limited to the file's
 * own projects, or to the users and devices that the file made.
 */
export const test = systemTest({ console: true }, async () => {});
