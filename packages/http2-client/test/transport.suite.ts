import { describe } from "vitest";
import { answersSuite } from "./answers.suite.ts";
import { connectingSuite } from "./connecting.suite.ts";
import { hostileSuite } from "./hostile.suite.ts";
import { lossSuite } from "./loss.suite.ts";
import { readingSuite } from "./reading.suite.ts";
import { resendSuite } from "./resend.suite.ts";
import { createSuiteBench } from "./suite-bench.ts";

/** What the transport must do. The peers are real sockets, and count at their end how often each request arrived. */
export function transportSuite(name: string): void {
  // Thousands of requests on a busy machine.
  describe(name, { timeout: 30_000 }, () => {
    const bench = createSuiteBench();
    answersSuite(bench);
    readingSuite(bench);
    resendSuite(bench);
    lossSuite(bench);
    connectingSuite(bench);
    hostileSuite(bench);
  });
}
