import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { bundle } from "@herald/bundle";
import { expectStatus } from "@herald/testing";
import { type Beside, startBeside } from "../../harness/beside.ts";
import type { LogLine } from "../../harness/logs.ts";
import { projectClient } from "../../harness/project.ts";
import type { ServiceName, System } from "../../harness/system.ts";
import { olderTree, oldestSupported } from "../older-tree.ts";
import type { Fixture, Row } from "../row.ts";
import { startTrial } from "../trial.ts";

const names: readonly ServiceName[] = ["gateway", "analytics", "registry", "dispatch"];

/** Variables of this version that the older service would refuse as unknown: an older deployment does not set them. */
function unknownIn(config: string, name: ServiceName, environment: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const own = `HERALD_${name.toUpperCase()}_`;
  const unknown = Object.keys(environment).filter((variable) => variable.startsWith(own) && !config.includes(variable));
  return Object.fromEntries(unknown.map((variable) => [variable, undefined]));
}

/** The source of the configuration of an older service. */
const configOf = (tree: string, name: ServiceName): Promise<string> =>
  readFile(join(tree, `services/${name}/src/config.ts`), "utf8");

const wentWrong = ({ level }: LogLine) => level === "error" || level === "fatal";

/** The older tree, with the bundles of its services. */
const older: Fixture<{ readonly tree: string; readonly commit: string }> = {
  open: async ({ folder, older }) => {
    const found = await olderTree(await folder(), older ?? (await oldestSupported()));
    await bundle(found.tree, [...names]);
    return found;
  },
};

/** The letters of earlier rows are no problem of this one. */
const deadLetters = async (system: System): Promise<{ id: string; reason: string; detail: string }[]> =>
  expectStatus(await system.admin("GET /dead-letters?per_page=100"), 200).body.data;

export const sideBySide: Row = {
  name: "side-by-side",
  fault: "an older version of each service beside the new one; the new ones stopped one by one, and back",
  pass: "0 errors, no dead letter; each version reads what the other writes",
  fixture: older,
  run: async ({ long, shared, use, defer }) => {
    const { tree, commit } = await use(older);
    const system = await shared();
    const lettersBefore = new Set((await deadLetters(system)).map(({ id }) => id));
    const from = system.logs.lines.length;
    const beside = new Map<ServiceName, Beside>();
    for (const name of names) {
      const service = await startBeside(system, name, {
        tree,
        env: {
          ...unknownIn(await configOf(tree, name), name, system.environmentOf(name)),
          HERALD_LOG_LEVEL: "debug", // debug lines show what it settled
        },
      });
      defer(() => service.stop());
      beside.set(name, service);
    }
    await Promise.all([...beside.values()].map((service) => service.ready()));
    const trial = await startTrial(system, { script: [] });
    // Clients of the older gateway send too.
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
    const letters = (await deadLetters(system)).filter(({ id }) => !lettersBefore.has(id));
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

const shuffled = (): ServiceName[] =>
  names
    .map((name) => ({ name, at: Math.random() }))
    .sort((one, other) => one.at - other.at)
    .map(({ name }) => name);

export const upgrade: Row = {
  name: "upgrade",
  fault: "an older version upgraded after the new bootstrap, service by service in random order, and back",
  pass: "0 errors, no dead letter, no refused send, no 404 of a known id, no repeat",
  fixture: older,
  run: async ({ long, start, use }) => {
    const { tree, commit } = await use(older);
    const upgraded = new Set<ServiceName>();
    const configs = new Map(await Promise.all(names.map(async (name) => [name, await configOf(tree, name)] as const)));
    const system = await start({
      startedFrom: (name, usual) =>
        upgraded.has(name)
          ? usual
          : { root: tree, env: { ...usual.env, ...unknownIn(configs.get(name) ?? "", name, usual.env) } },
    });
    const from = system.logs.lines.length;
    const trial = await startTrial(system, { script: [] });
    for (let round = 0; round < (long ? 10 : 2); round++) {
      await trial.broadcast();
      await delay(1_000);
    }
    const replace = async (name: ServiceName) => {
      await trial.broadcastUnderWay();
      if (!upgraded.delete(name)) upgraded.add(name);
      await system.services[name].kill("SIGTERM");
      await trial.broadcast();
      await system.services[name].ready();
      await trial.recovered();
      if (long) await delay(20_000);
    };
    for (let round = 0; round < (long ? 4 : 1); round++) {
      const [on, back] = [shuffled(), shuffled()];
      // Before they run, because the order explains a failure.
      trial.note(`upgraded ${on.join(", ")}; back ${back.join(", ")}`);
      for (const name of [...on, ...back]) await replace(name);
    }
    const findings = await trial.finish({ timeoutMs: 90_000 });
    if (findings.repeated.marked > 0) trial.problem(`${findings.repeated.marked} came twice`);
    const lines = system.logs.lines.slice(from);
    for (const { part, line } of lines.filter(wentWrong).slice(0, 10)) trial.problem(`${part}: ${line.slice(0, 300)}`);
    for (const { reason, detail } of (await deadLetters(system)).slice(0, 5))
      trial.problem(`a dead letter: ${reason}: ${detail}`);
    const counts = ([status, count]: [number, number]) => `${count} × ${status}`;
    // 503 with Retry-After is allowed: with one replica of each service, there may be none for a moment.
    for (const [status, count] of trial.load.answers)
      if (status !== 202 && status !== 503) trial.problem(`${count} sends were answered ${status}`);
    if (trial.load.reads.has(404)) trial.problem(`${trial.load.reads.get(404)} ids that were given out were a 404`);
    trial.note(`from ${commit.slice(0, 24)}; sends were answered ${[...trial.load.answers].map(counts).join(", ")}`);
    return findings;
  },
};
