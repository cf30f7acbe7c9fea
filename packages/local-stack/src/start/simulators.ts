import { readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import type { SimulatorAddresses } from "./demo-project.ts";
import type { Part } from "./keep-running.ts";
import type { Ports } from "./ports.ts";
import { type ProgramOptions, programPart } from "./services.ts";

const readyWithinMs = 30_000;

/** The providers, played by a process of its own; it keeps its certificate, so that a restart changes nothing for dispatch. */
export function simulatorsPart(options: Omit<ProgramOptions, "program"> & { dataDir: string; ports: Ports }): {
  part: Part;
  addresses: () => Promise<SimulatorAddresses>;
} {
  const { dataDir, ports, env } = options;
  const stateFile = join(dataDir, "simulators.json");
  const part = programPart("simulators", () => ({
    ...options,
    program: "simulators",
    env: {
      ...env,
      HERALD_SIMULATORS_APNS_PORT: String(ports.apns),
      HERALD_SIMULATORS_FCM_PORT: String(ports.fcm),
      HERALD_SIMULATORS_WEBPUSH_PORT: String(ports.webpush),
      HERALD_SIMULATORS_CONTROL_PORT: String(ports.control),
      HERALD_SIMULATORS_GATEWAY: `http://127.0.0.1:${ports.gateway}`,
      HERALD_SIMULATORS_IDENTITY_FILE: join(dataDir, "simulators-identity.json"),
      HERALD_SIMULATORS_STATE_FILE: stateFile,
    },
    // Its one line is the state file's content, a certificate included.
    logLine: (name, line) => !line.startsWith("{") && options.logLine(name, line),
  }));
  return {
    part: {
      ...part,
      start: async () => {
        await rm(stateFile, { force: true });
        return part.start();
      },
    },
    addresses: () => readState(stateFile),
  };
}

async function readState(file: string): Promise<SimulatorAddresses> {
  const deadline = Date.now() + readyWithinMs;
  for (;;) {
    const text = await readFile(file, "utf8").catch(() => "");
    if (text.endsWith("\n")) return JSON.parse(text) as SimulatorAddresses;
    if (Date.now() > deadline) throw new Error(`the simulators were not ready in ${readyWithinMs / 1000} s`);
    await delay(50);
  }
}
