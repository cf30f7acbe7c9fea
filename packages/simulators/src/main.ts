import { writeFile } from "node:fs/promises";
import { readConfig } from "./config.ts";
import { startSimulators } from "./start-simulators.ts";

/** Prints one JSON line with the addresses and the authority when ready, and writes the same to the state file. */
try {
  const { options, stateFile } = readConfig(process.env);
  const simulators = await startSimulators(options);
  for (const signal of ["SIGTERM", "SIGINT"] as const) process.once(signal, () => void simulators.stop());
  const { apns, fcm, webpush, control, ca } = simulators;
  const state = JSON.stringify({ apns: apns.url, fcm: fcm.url, webpush: webpush.url, control: control.url, ca });
  if (stateFile !== undefined) await writeFile(stateFile, `${state}\n`);
  process.stdout.write(`${state}\n`);
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 1;
}
