import { writeFile } from "node:fs/promises";
import { readConfig } from "./config.ts";
import { startSimulators } from "./start-simulators.ts";

/** Prints one JSON line with the addresses and the authority when ready, and writes the same to the state file. */
try {
  const { options, stateFile } = readConfig(process.env);
  const simulators = await startSimulators(options);
  for (const signal of ["SIGTERM", "SIGINT"] as const) process.once(signal, () => void simulators.stop());
  const state = JSON.stringify({ apns: simulators.apns.url, control: simulators.control.url, ca: simulators.ca });
  if (stateFile !== undefined) await writeFile(stateFile, `${state}\n`);
  process.stdout.write(`${state}\n`);
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 1;
}
