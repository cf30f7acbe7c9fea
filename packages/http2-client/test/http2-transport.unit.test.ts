import { transportSuite } from "./transport.suite.ts";

transportSuite("a pool of HTTP/2 connections");
