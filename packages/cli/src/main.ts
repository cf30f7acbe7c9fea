#!/usr/bin/env -S node --conditions=@herald/source
import { enableCompileCache } from "node:module";

// Stripping types and compiling are two thirds of what a start costs.
enableCompileCache();
const { run } = await import("./run.ts");
process.exitCode = await run(process.argv.slice(2), process);
