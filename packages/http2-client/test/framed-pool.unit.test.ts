import { createFramedPool } from "../src/transports.ts";
import { transportSuite } from "./transport.suite.ts";

transportSuite("a pool framed by hand", createFramedPool);
