import { randomBytes } from "node:crypto";
import { eventually, expectStatus } from "@herald/testing";
import type { ServiceName, System } from "../../harness/system.ts";
import type { Row } from "../row.ts";
import { startTrial } from "../trial.ts";

const names: readonly ServiceName[] = ["gateway", "analytics", "registry", "dispatch"];
const newKey = `next:${randomBytes(32).toString("base64")}`;

/** The steps of docs/how-to/rotate-keys.md: the new value of a key variable. */
const steps: readonly ((ring: string, variable: string) => string)[] = [
  (ring) => `${ring},${newKey}`,
  (ring) => `${newKey},${ring}`,
  // Open tokens live for thirty days, and audit rows for ever.
  (ring, variable) => (/OPEN|REGISTRY/.test(variable) ? `${newKey},${ring}` : newKey),
];

/** The ids that every replica reports, without duplicates: one text for each order of keys. */
const idsIn = async (system: System): Promise<string[]> => {
  const { services } = expectStatus(await system.admin("GET /status"), 200).body.data;
  const rings = services.flatMap(({ replicas }: { replicas: { keys?: Record<string, string[]> }[] }) =>
    replicas.flatMap(({ keys = {} }) => Object.values(keys).map((ids) => ids.join())),
  );
  return [...new Set<string>(rings)].toSorted();
};

export const rotate: Row = {
  name: "rotate",
  fault: "all keys of all services are rotated under load: the new one second, then first, then alone where it may be",
  pass: "no send is refused but with 503 and Retry-After, opens of earlier pushes count, credentials are still read, 0 errors",
  run: async ({ start }) => {
    let step = -1;
    const system = await start({
      startedFrom: (_, usual) => {
        const rings = Object.entries(usual.env).filter(([name]) => name.endsWith("_KEYS"));
        const change = steps[step];
        const changed = rings.map(([name, ring]) => [name, change?.(ring ?? "", name) ?? ring]);
        return { ...usual, env: { ...usual.env, ...Object.fromEntries(changed) } };
      },
    });
    const from = system.logs.lines.length;
    const trial = await startTrial(system, { script: [] });
    const [before] = await idsIn(system);
    const expected = [[`${before},next`], [`next,${before}`], ["next", `next,${before}`]];
    for (step = 0; step < steps.length; step++) {
      for (const name of names) {
        await trial.broadcast();
        await system.services[name].kill("SIGTERM");
        await system.services[name].ready();
        await trial.recovered();
      }
      await eventually(async () => {
        const found = await idsIn(system);
        if (found.join(" ") !== expected[step]?.join(" "))
          throw new Error(`step ${step + 1}: keys are ${found.join(" ")}`);
      });
    }
    const findings = await trial.finish({ timeoutMs: 90_000 });
    if (findings.repeated.marked > 0) trial.problem(`${findings.repeated.marked} came twice`);
    for (const [status, count] of trial.load.answers)
      if (status !== 202 && status !== 503) trial.problem(`${count} sends were answered ${status}`);
    for (const { part, line, level } of system.logs.lines
      .slice(from)
      .filter((one) => one.level === "error")
      .slice(0, 10))
      trial.problem(`${part} ${level}: ${line.slice(0, 300)}`);
    return findings;
  },
};
