import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { expectStatus } from "@herald/testing";
import { type Beside, startBeside } from "../../harness/beside.ts";
import type { LogLine } from "../../harness/logs.ts";
import { projectClient } from "../../harness/project.ts";
import type { ServiceName } from "../../harness/system.ts";
import { olderTree } from "../older-tree.ts";
import type { Row } from "../row.ts";
import { startTrial } from "../trial.ts";

/** In the order of an update: who reads the newest messages is updated before those who write them. */
const names: readonly ServiceName[] = ["gateway", "analytics", "registry", "dispatch"];

/** The variables of this version's service that the older one does not know, and would refuse: an older deployment sets none. */
async function unknownTo(tree: string, name: ServiceName, environment: NodeJS.ProcessEnv): Promise<NodeJS.ProcessEnv> {
  const known = await readFile(join(tree, `services/${name}/src/config.ts`), "utf8");
  const own = `HERALD_${name.toUpperCase()}_`;
  const listening = ["HOST", "PORT", "METRICS_PORT"].map((field) => `${own}${field}`);
  const unknown = Object.keys(environment).filter(
    (variable) => variable.startsWith(own) && !listening.includes(variable) && !known.includes(variable),
  );
  return Object.fromEntries(unknown.map((variable) => [variable, undefined]));
}

const wentWrong = ({ level }: LogLine) => level === "error" || level === "fatal";

export const sideBySide: Row = {
  name: "side-by-side",
  fault: "an older version of each service beside the new one, then the new ones stopped one by one, and back",
  pass: "0 errors, no dead letter; the older versions read what the new ones write, and the other way round",
  run: async ({ long, start, folder, older, defer }) => {
    const { tree, commit } = await olderTree(await folder(), older);
    const system = await start({ env: { HERALD_LOG_LEVEL: "debug" } });
    const from = system.logs.lines.length;
    // As the only user that older versions had: their requests are answered elsewhere than their own user may read.
    const beside = new Map<ServiceName, Beside>();
    for (const name of names) {
      const service = await startBeside(system, name, {
        tree,
        env: { ...(await unknownTo(tree, name, system.environmentOf(name))), ...system.broker.loginOf("admin") },
      });
      defer(() => service.stop());
      beside.set(name, service);
    }
    await Promise.all([...beside.values()].map((service) => service.ready()));
    const trial = await startTrial(system, { script: [] });
    // The older gateway's clients are there too.
    const client = projectClient(beside.get("gateway")?.url ?? "", trial.project);
    const sendByOlder = async () => {
      const { id } = await client.send({ title: "By the older gateway", targets: ["everyone"] });
      trial.promise(id, 3 * trial.each);
    };
    for (let round = 0; round < (long ? 20 : 2); round++) {
      await trial.broadcast();
      await sendByOlder();
      await delay(1_000);
    }
    for (const name of names) {
      await sendByOlder();
      await system.services[name].kill("SIGTERM");
      await trial.broadcast();
      await system.services[name].ready();
    }
    await trial.recovered();
    const findings = await trial.finish({ timeoutMs: 90_000 });
    const lines = system.logs.lines.slice(from);
    for (const { part, line } of lines.filter(wentWrong).slice(0, 10)) trial.problem(`${part}: ${line.slice(0, 300)}`);
    const { data: letters } = expectStatus(await system.admin("GET /dead-letters"), 200).body;
    for (const { reason, detail } of letters.slice(0, 5)) trial.problem(`a dead letter: ${reason}: ${detail}`);
    const settled = names.map((name) => {
      const count = lines.filter(({ part, durable }) => part === `${name}-beside` && durable !== undefined).length;
      if (count === 0 && name !== "gateway") trial.problem(`the older ${name} has done nothing`);
      return `${name} ${count}`;
    });
    trial.note(`older: ${commit.slice(0, 12)}; it settled: ${settled.join(", ")}`);
    return findings;
  },
};
