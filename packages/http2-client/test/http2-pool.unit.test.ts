import { createHttp2Pool } from "../src/transports.ts";
import { transportSuite } from "./transport.suite.ts";

transportSuite("a pool over node:http2", createHttp2Pool);
