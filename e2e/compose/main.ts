import assert from "node:assert/strict";
import { appendFile, cp, mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePort } from "@herald/provision";
import { must } from "../../infra/release/must.ts";
import { shellBlocks } from "../harness/shell-blocks.ts";
import { tryArchive } from "./archive.ts";
import { builtFrom, copyTree, type Engine, findEngine, withoutDigests } from "./engine/find-engine.ts";
import { signFirstOperatorIn } from "./first-operator.ts";
import { type Run, readDemo, refusedCertificate, sendAndOpen } from "./first-push.ts";
import { checkContainers, checkImages } from "./inspect.ts";

/**
 * `npm run test:compose`: builds the images and runs docker-compose.yml as the deployment page describes, sends and opens a push, takes
 * everything down and up again, and sends once more. Then it releases the tree to a registry of its own, and starts from the archive. Skipped without a running engine, unless HERALD_COMPOSE_ENGINE=required. With
 * HERALD_COMPOSE_ENGINE=local it starts an engine, as root on Debian. Exits with 0 if everything passed or was skipped.
 */

const tlsPorts = ["TLS", "TLS_REDIRECT", "TLS_ADMIN"] as const;
const services = ["gateway", "registry", "dispatch", "analytics"] as const;
const say = (line: string) => void process.stdout.write(`${line}\n`);

const timed = async (what: string, work: () => Promise<unknown>): Promise<void> => {
  const begun = performance.now();
  await work();
  say(`${what}: ${((performance.now() - begun) / 1_000).toFixed(1)} s`);
};

const engine = await findEngine();
if (engine !== undefined) {
  const tree = await mkdtemp(join(tmpdir(), "herald-compose-"));
  const name = `herald-test-${process.pid}`;
  const env = { ...engine.env, COMPOSE_PROJECT_NAME: name, HERALD_VERSION: name };
  const here = { cwd: tree, env };
  const compose = (...args: string[]) => must("docker", ["compose", ...args], here);
  try {
    await test(tree, here, compose, engine);
    say("test:compose passed");
  } catch (error) {
    say(await compose("logs", "--no-color", "--tail", "40").catch(() => ""));
    say(error instanceof Error ? (error.stack ?? error.message) : String(error));
    process.exitCode = 1;
  } finally {
    await compose("--profile", "*", "down", "--volumes", "--remove-orphans").catch(() => {});
    const built = ["bus", "simulators", ...services].map((service) => `localhost/herald/${service}:${name}`);
    await must("docker", ["image", "rm", "--force", ...built], here).catch(() => {});
    await engine.stop();
    await rm(tree, { recursive: true, force: true });
  }
}

async function test(
  tree: string,
  here: { cwd: string; env: NodeJS.ProcessEnv },
  compose: (...args: string[]) => Promise<string>,
  { local }: Engine,
): Promise<void> {
  await copyTree(tree);
  if (local)
    for (const file of builtFrom.map((name) => join(tree, name)))
      await writeFile(file, withoutDigests(await readFile(file, "utf8")));
  await assert.rejects(compose("config", "--quiet"), /run infra\/init first/);
  const deploy = await readFile(join(tree, "docs/how-to/deploy.md"), "utf8");
  const shell: Run = (command, ...args) => must(command, args, here);
  const [start, withTls = "", tryTls = ""] = shellBlocks(deploy, "On one host, with compose");
  const [init = "", up = ""] = withTls.trim().split("\n");
  await shell("sh", "-ec", `${init.replace("push.example.com", "localhost")} --simulators`);
  const environment = join(tree, ".env");
  assert.equal(((await stat(environment)).mode & 0o777).toString(8), "600");
  const written = await readFile(environment, "utf8");
  await must("infra/init", [], here);
  assert.equal(await readFile(environment, "utf8"), written, "infra/init keeps a file that is there");
  for (const part of ["GATEWAY", "GATEWAY_ADMIN", "NATS", "SIMULATORS", "PROMETHEUS", "GRAFANA", ...tlsPorts])
    await appendFile(environment, `HERALD_PUBLISH_${part}=127.0.0.1:${await freePort()}\n`);
  // The images of this profile cannot be built here. If they can be pulled, the profile must at least become healthy.
  if (!local) here.env.COMPOSE_PROFILES = "simulators,tls,observability";

  // Builds what is missing, as the first `up` does.
  await timed("images, nothing built before", () => compose("create"));
  await appendFile(join(tree, "services/gateway/src/main.ts"), "\n// one line\n");
  await timed("images, after a change of one line", () => compose("build"));
  await checkImages(here, services, say);

  const begun = performance.now();
  assert.equal(start, `infra/init\n${up}\n`);
  await timed(up, () => shell("sh", "-ec", up));
  await checkContainers(here, services, say);
  const printed = await printedWithoutSimulators(tree, here);
  const [, makeProject = ""] = /--wait\n {2}(curl .*?)\n\n/s.exec(printed) ?? [];
  assert.match(await shell("sh", "-c", makeProject), /"token":"hpt_/);
  const first = readDemo(await compose("run", "--rm", "demo"));
  await sendAndOpen(first, shell);
  say(`sent and opened a push, ${((performance.now() - begun) / 1_000).toFixed(1)} s after \`up\` began`);
  const [, makeLink = ""] = /(curl -s -X POST .*?)\n\n/s.exec(printed) ?? [];
  const admin = await signFirstOperatorIn(makeLink, first.gateway, shell);
  say("the first operator signed in to the console by a link; the port for apps serves no operator");

  const [, port = ""] = /^HERALD_PUBLISH_TLS=.*:(\d+)$/m.exec(await readFile(environment, "utf8")) ?? [];
  assert.match(await shell("sh", "-ec", tryTls.replace("//localhost", `//localhost:${port}`)), /"ready"/);
  say("the gateway answers by TLS, with the certificate of Caddy's own authority");

  await compose("down");
  await timed("up --wait, after down", () => compose("up", "--detach", "--wait"));
  const second = readDemo(await compose("run", "--rm", "demo"));
  assert.deepEqual(second, first, "the project and its token are still known");
  await sendAndOpen(second, shell);
  say("sent and opened a push after down and up");

  await must("infra/backup", ["before"], here);
  await sendAndOpen(second, shell);
  await assert.rejects(must("infra/restore", ["before"], here), /restore with --replace/);
  await compose("down");
  await must(
    "docker",
    ["volume", "rm", ...["nats", "mongo"].map((volume) => `${here.env.COMPOSE_PROJECT_NAME}_${volume}`)],
    here,
  );
  await timed("restore into empty volumes", () => must("infra/restore", ["before"], here));
  await sendAndOpen(readDemo(await compose("run", "--rm", "demo")), shell);
  assert.deepEqual(readDemo(await compose("run", "--rm", "demo")), first, "the project is restored");
  say("backed up, lost both volumes, restored, and sent and opened a push");

  if (!local) {
    const [, password = ""] = /^HERALD_MONGO_PASSWORD_REGISTRY=(.*)$/m.exec(written) ?? [];
    const url = `mongodb://herald-registry:${password}@mongo:27017/herald_dispatch?authSource=admin`;
    const read = ["exec", "-T", "mongo", "mongosh", "--quiet", url, "--eval", "db.notifications.findOne()"];
    await assert.rejects(compose(...read), /not authorized/i);
    say("a service is refused the database of another");
  }
  const page = await readFile(join(tree, "docs/how-to/use-postgresql.md"), "utf8");
  const [move = ""] = shellBlocks(page, "Move from MongoDB");
  await timed("move to PostgreSQL", () => must("sh", ["-ec", move], here));
  await sendAndOpen(readDemo(await compose("run", "--rm", "demo")), shell);
  assert.match(await compose("ps", "--services"), /^postgresql$/m);
  assert.deepEqual(readDemo(await compose("run", "--rm", "demo")), first, "the project has moved");
  say("moved to PostgreSQL as the page says, and sent and opened a push");
  await refusedCertificate(second, admin, shell);
  say(
    "a refused certificate is in the provider's state, the delivery trace, the log and the metrics; new settings send what waited",
  );

  await compose("--profile", "*", "down", "--volumes");
  await tryArchive(tree, here.env, { local, say });
}

/** The output of `infra/init` for users with accounts at the push services. */
async function printedWithoutSimulators(tree: string, here: { cwd: string; env: NodeJS.ProcessEnv }): Promise<string> {
  const other = join(tree, "without-simulators");
  await cp(join(tree, "infra/init"), join(other, "infra/init"));
  const environment = await readFile(join(tree, ".env"), "utf8");
  await writeFile(join(other, ".env"), environment.replace(/^COMPOSE_PROFILES=.*\n/m, ""));
  return must(join(other, "infra/init"), [], here);
}
