import { transportSuite } from "./transport.suite.ts";
import { createHttp2Pool } from "./transports.ts";

transportSuite("a pool over node:http2", createHttp2Pool);
