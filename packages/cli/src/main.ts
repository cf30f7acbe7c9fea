#!/usr/bin/env -S node --conditions=@herald/source
import module from "node:module";

// Two thirds of the start-up time is stripping types and compiling. Node 20 has no such cache.
module.enableCompileCache?.();
const { run } = await import("./run.ts");
process.exitCode = await run(process.argv.slice(2), process);
