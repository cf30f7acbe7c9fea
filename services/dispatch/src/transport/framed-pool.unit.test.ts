import { transportSuite } from "./transport.suite.ts";
import { createFramedPool } from "./transports.ts";

transportSuite("a pool framed by hand", createFramedPool);
