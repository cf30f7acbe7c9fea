import { describe } from "vitest";
import { answersSuite } from "./testing/answers.suite.ts";
import { connectingSuite } from "./testing/connecting.suite.ts";
import { hostileSuite } from "./testing/hostile.suite.ts";
import { lossSuite } from "./testing/loss.suite.ts";
import { readingSuite } from "./testing/reading.suite.ts";
import { resendSuite } from "./testing/resend.suite.ts";
import { createSuiteBench } from "./testing/suite-bench.ts";
import type { CreateTransport } from "./transports.ts";

/** What every transport must do. The peers are real sockets, and count at their end how often each request arrived. */
export function transportSuite(name: string, create: CreateTransport): void {
  // Thousands of requests on a busy machine.
  describe(name, { timeout: 30_000 }, () => {
    const bench = createSuiteBench(create);
    answersSuite(bench);
    readingSuite(bench);
    resendSuite(bench);
    lossSuite(bench);
    connectingSuite(bench);
    hostileSuite(bench);
  });
}
