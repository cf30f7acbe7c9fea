import { readEnvironment } from "./config.ts";
import { startSimulators } from "./start-simulators.ts";

/** When ready, prints one JSON line with the addresses and the authority. */
try {
  const simulators = await startSimulators(readEnvironment(process.env));
  for (const signal of ["SIGTERM", "SIGINT"] as const) process.once(signal, () => void simulators.stop());
  const { apns, fcm, webpush, control, ca } = simulators;
  const state = JSON.stringify({ apns: apns.url, fcm: fcm.url, webpush: webpush.url, control: control.url, ca });
  process.stdout.write(`${state}\n`);
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 1;
}
