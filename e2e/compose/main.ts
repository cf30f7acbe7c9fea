import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { appendFile, cp, mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { freePort, images } from "@herald/local-stack";
import { must } from "../../infra/release/must.ts";
import { shellBlocks } from "../harness/shell-blocks.ts";
import { tryArchive } from "./archive.ts";
import { makeBaseImages } from "./engine/base-images.ts";
import { startLocalEngine } from "./engine/local-engine.ts";
import { signFirstOperatorIn } from "./first-operator.ts";
import { type Run, readDemo, refusedCertificate, sendAndOpen } from "./first-push.ts";
import { checkContainers, checkImages } from "./inspect.ts";

/**
 * `npm run test:compose`: builds the images and runs docker-compose.yml as the deployment page describes, sends and opens a push, takes
 * everything down and up again, and sends once more. Then it releases the tree to a registry of its own, and starts from the archive. Skipped without a running engine, unless HERALD_COMPOSE_ENGINE=required. With
 * HERALD_COMPOSE_ENGINE=local it starts an engine, as root on Debian. Exits with 0 if everything passed or was skipped.
 */

const root = join(import.meta.dirname, "../..");
const services = ["gateway", "registry", "dispatch", "analytics"] as const;
const run = promisify(execFile);
const say = (line: string) => void process.stdout.write(`${line}\n`);

const timed = async (what: string, work: () => Promise<unknown>): Promise<void> => {
  const begun = performance.now();
  await work();
  say(`${what}: ${((performance.now() - begun) / 1_000).toFixed(1)} s`);
};

type Engine = { env: NodeJS.ProcessEnv; local: boolean; stop: () => Promise<void> };

/** Without its digest: an image that is made here has another one. */
const withoutDigests = (text: string) => text.replaceAll(/@sha256:[0-9a-f]{64}/g, "");

/** The files that name images of others. */
const builtFrom = [
  "docker-compose.yml",
  "infra/Dockerfile",
  "infra/postgresql/compose.yaml",
  "infra/postgresql/Dockerfile",
];

const imageIn = async (file: string, pattern: RegExp): Promise<string> => {
  const [, image] = pattern.exec(await readFile(join(root, file), "utf8")) ?? [];
  return withoutDigests(String(image));
};
const imagesOfOthers = async () => ({
  ...images,
  node: await imageIn("infra/Dockerfile", /^FROM (?:--\S+ )?(node:\S+)/m),
  debian: await imageIn("infra/postgresql/Dockerfile", /^FROM (debian:\S+)/m),
  ferretdb: await imageIn("infra/postgresql/compose.yaml", /^ +image: (\S+\/ferretdb:\S+)/m),
});

const findEngine = async (): Promise<Engine | undefined> => {
  if (process.env.HERALD_COMPOSE_ENGINE === "local") {
    const engine = await startLocalEngine({ env: process.env, progress: say });
    try {
      await makeBaseImages({ engine, progress: say }, await imagesOfOthers());
    } catch (error) {
      await engine.stop();
      throw error;
    }
    say("MongoDB is played by FerretDB with DocumentDB here");
    return { env: engine.env, local: true, stop: engine.stop };
  }
  const env = process.env;
  for (const asked of [["version"], ["compose", "version"]]) {
    const why = await run("docker", asked, { env, timeout: 10_000 }).then(
      () => undefined,
      (error: Error) => error.message.trim().split("\n").at(-1),
    );
    if (why === undefined) continue;
    if (process.env.HERALD_COMPOSE_ENGINE === "required") throw new Error(`\`docker ${asked.join(" ")}\` says: ${why}`);
    say(`SKIPPED: nothing was built or run, because \`docker ${asked.join(" ")}\` says: ${why}`);
    say("HERALD_COMPOSE_ENGINE=local npm run test:compose sets up an engine of its own, as root on Debian.");
    return undefined;
  }
  return { env, local: false, stop: async () => {} };
};

/** Copies the tree as a clone would have it, with uncommitted changes. */
const copyTree = async (tree: string): Promise<void> => {
  const here = { cwd: root, env: process.env };
  const listed = await must("git", ["ls-files", "-z", "--cached", "--others", "--exclude-standard"], here);
  for (const file of new Set(listed.split("\0").filter(Boolean)))
    await cp(join(root, file), join(tree, file)).catch((error: NodeJS.ErrnoException) => {
      // The file is deleted, but the deletion is not committed yet.
      if (error.code !== "ENOENT") throw error;
    });
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
  await must("infra/init", ["--simulators"], here);
  const environment = join(tree, ".env");
  assert.equal(((await stat(environment)).mode & 0o777).toString(8), "600");
  const written = await readFile(environment, "utf8");
  await must("infra/init", [], here);
  assert.equal(await readFile(environment, "utf8"), written, "infra/init keeps a file that is there");
  for (const part of ["GATEWAY", "GATEWAY_ADMIN", "NATS", "SIMULATORS", "PROMETHEUS", "GRAFANA"])
    await appendFile(environment, `HERALD_PUBLISH_${part}=127.0.0.1:${await freePort()}\n`);
  // The images of this profile cannot be built here. If they can be pulled, the profile must at least become healthy.
  if (!local) here.env.COMPOSE_PROFILES = "simulators,observability";

  // Builds what is missing, as the first `up` does.
  await timed("images, nothing built before", () => compose("create"));
  await appendFile(join(tree, "services/gateway/src/main.ts"), "\n// one line\n");
  await timed("images, after a change of one line", () => compose("build"));
  await checkImages(here, services, say);

  const begun = performance.now();
  await timed("up --wait", () => compose("up", "--detach", "--wait"));
  await checkContainers(here, services, say);
  const shell: Run = (command, ...args) => must(command, args, here);
  const printed = await printedWithoutSimulators(tree, here);
  const [, makeProject = ""] = /--wait\n {2}(curl .*?)\n\n/s.exec(printed) ?? [];
  assert.match(await shell("sh", "-c", makeProject), /"token":"hpt_/);
  const first = readDemo(await compose("run", "--rm", "demo"));
  await sendAndOpen(first, shell);
  say(`sent and opened a push, ${((performance.now() - begun) / 1_000).toFixed(1)} s after \`up\` began`);
  const [, makeLink = ""] = /(curl -s -X POST .*?)\n\n/s.exec(printed) ?? [];
  const admin = await signFirstOperatorIn(makeLink, first.gateway, shell);
  say("the first operator signed in to the console by a link; the port for apps serves no operator");

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
