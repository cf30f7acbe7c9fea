import { readEnvironment } from "./config.ts";
import { startSimulators } from "./start-simulators.ts";

let ports: ReturnType<typeof readEnvironment>["ports"] | undefined;

/** What to set, if the error is that a port is taken. */
const remedy = (error: unknown): string => {
  const { code, port } = error as NodeJS.ErrnoException & { port?: number };
  const [name] = Object.entries(ports ?? {}).find(([, given]) => given === port) ?? [];
  return code === "EADDRINUSE" && name ? `: set HERALD_SIMULATORS_${name.toUpperCase()}_PORT to another port` : "";
};

/** When ready, prints one JSON line with the addresses and the authority. */
try {
  const options = readEnvironment(process.env);
  ports = options.ports;
  const simulators = await startSimulators(options);
  for (const signal of ["SIGTERM", "SIGINT"] as const) process.once(signal, () => void simulators.stop());
  const { apns, fcm, webpush, control, ca } = simulators;
  const state = JSON.stringify({ apns: apns.url, fcm: fcm.url, webpush: webpush.url, control: control.url, ca });
  process.stdout.write(`${state}\n`);
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}${remedy(error)}\n`);
  process.exitCode = 1;
}
