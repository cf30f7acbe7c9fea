import assert from "node:assert/strict";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePort } from "@herald/provision";
import { eventually } from "@herald/testing";
import { must } from "../../../infra/release/must.ts";
import { builtFrom, copyTree, type Engine, findEngine, withoutDigests } from "../engine/find-engine.ts";
import { readDemo, sendAndOpen } from "../first-push.ts";
import { backupAndRestore } from "./backup.ts";
import {
  type Docker,
  dockerOf,
  makeProject,
  type OneContainer,
  startOne,
  startSimulators,
  untilReady,
  waits,
} from "./container.ts";
import { killEachPart, killWhileSending } from "./kills.ts";
import { loadInMemory } from "./load.ts";
import { refusals } from "./refusals.ts";

/**
 * `npm run test:one`: builds the image of the one container, starts it as docs/how-to/one-container.md says, and kills, fills, backs up,
 * restores and upgrades it. Skipped without a running engine, unless HERALD_COMPOSE_ENGINE=required; with =local it starts an engine, as
 * root on Debian. HERALD_TEST_ONLY=kills leaves out the refusals, the load and compose. Exits with 0 if everything passed or was skipped.
 */

const say = (line: string) => void process.stdout.write(`${new Date().toISOString().slice(11, 19)} ${line}\n`);
const version = "0.1.0";
const newer = "0.2.0";

/** The token and the link that a first start prints. */
export const readGreeting = (logs: string) => {
  const [, url = "", token = "", link = ""] =
    /Address +(http:\S+)\n +Admin token +(\w+)\n +Console +(\S+)\n/.exec(logs) ?? [];
  assert.ok(link, `no greeting in:\n${logs}`);
  return { url, token, link };
};

const firstStart = async (one: OneContainer, token: string): Promise<void> => {
  const { url, link } = readGreeting(await one.logs());
  assert.equal(url, one.url);
  const [, code = ""] = /\/console#code=(hoc_\S+)$/.exec(link) ?? [];
  const signIn = await fetch(`${one.url}/admin/v1/sessions`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ code }),
  });
  assert.equal(signIn.status, 201, await signIn.text());
  assert.equal((await fetch(`${one.url}/console`)).status, 200);
  const owners = await one.exec(
    "sh",
    "-c",
    "stat -c '%a %U' /data/.env; ps -eo user:20,args | grep -E 'nats-server|ferretdb$|postgres -D|dist/main'",
  );
  assert.match(owners, /^600 root$/m);
  const users = ["nats", "ferretdb", "postgres", "gateway", "registry", "dispatch", "analytics"];
  for (const user of users) assert.match(owners, new RegExp(`^${user} `, "m"), user);
  assert.doesNotMatch(owners, /^root +\S*(node|nats|ferret|postgres)|simulators/m);
  // Of /proc/net: an address of 0, state 0A. 1F90 is 8080.
  const listening = await one.exec("sh", "-c", "cat /proc/net/tcp /proc/net/tcp6");
  const open = [...listening.matchAll(/: 0{8,32}:([0-9A-F]{4}) \S+ 0A /g)].map(([, port]) => port);
  assert.deepEqual([...new Set(open)], ["1F90"], "only 8080 is open");
  const environment = await one.exec(
    "sh",
    "-c",
    'for p in /proc/[0-9]*; do s6-setuidgid registry cat $p/environ 2>/dev/null; done | tr "\\0" "\\n"',
  );
  assert.match(environment, /^HERALD_REGISTRY_MASTER_KEYS=/m);
  assert.doesNotMatch(
    environment,
    /HERALD_(ADMIN_TOKEN|OPEN_KEYS|DISPATCH_MASTER_KEYS|NATS_PASSWORD_|MONGO_PASSWORD_ADMIN)/,
  );
  assert.equal(
    (await fetch(`${one.url}/admin/v1/projects`, { headers: { authorization: `Bearer ${token}` } })).status,
    200,
  );
};

const resetToken = async (one: OneContainer, old: string): Promise<string> => {
  const { token } = readGreeting(await one.exec("reset-admin-token"));
  const status = async (bearer: string) =>
    (await fetch(`${one.url}/admin/v1/projects`, { headers: { authorization: `Bearer ${bearer}` } })).status;
  assert.deepEqual([await status(old), await status(token)], [401, 200]);
  return token;
};

const engine = await findEngine();
if (engine !== undefined) {
  const tree = await mkdtemp(join(tmpdir(), "herald-one-"));
  const name = `herald-one-${process.pid}`;
  const docker = dockerOf(engine.env, tree);
  try {
    await test(tree, name, docker, engine);
    say("test:one passed");
  } catch (error) {
    for (const part of (await docker("ps", "--all", "--format", "{{.Names}}", "--filter", `name=${name}`))
      .split("\n")
      .filter(Boolean))
      say(`${part}:\n${(await docker("logs", "--tail", "60", part).catch(String)).slice(-6_000)}`);
    say(error instanceof Error ? (error.stack ?? error.message) : String(error));
    process.exitCode = 1;
  } finally {
    const ids = (await docker("ps", "--all", "--quiet", "--filter", `name=${name}`)).split("\n").filter(Boolean);
    if (ids.length > 0) await docker("rm", "--force", "--volumes", ...ids).catch(() => {});
    const volumes = (await docker("volume", "ls", "--quiet", "--filter", `name=${name}`)).split("\n").filter(Boolean);
    if (volumes.length > 0) await docker("volume", "rm", ...volumes).catch(() => {});
    await docker("network", "rm", name).catch(() => {});
    await docker("image", "rm", "--force", `${name}:${version}`, `${name}:${newer}`).catch(() => {});
    await engine.stop();
    await rm(tree, { recursive: true, force: true });
  }
}

async function test(tree: string, name: string, docker: Docker, { env, local }: Engine): Promise<void> {
  await copyTree(tree);
  if (local)
    for (const file of builtFrom.map((path) => join(tree, path)))
      await writeFile(file, withoutDigests(await readFile(file, "utf8")));
  for (const tag of [version, newer])
    await docker(
      "build",
      "--quiet",
      "--file",
      "infra/Dockerfile",
      "--target",
      "all",
      "--build-arg",
      `VERSION=${tag}`,
      "--tag",
      `${name}:${tag}`,
      ".",
    );
  const bytes = Number(await docker("image", "inspect", "--format", "{{.Size}}", `${name}:${version}`));
  say(`the image has ${Math.round(bytes / 1e6)} MB`);

  if (process.env.HERALD_TEST_ONLY !== "kills") await refusals(docker, name, `${name}:${version}`);
  say("what cannot run says why: an option, a user, /data, memory, disk, a newer version, another PostgreSQL");

  await docker("network", "create", name);
  const simulators = await startSimulators(docker, `${name}:${version}`, name);
  const options = [
    "--network",
    name,
    "--memory",
    "1g",
    "--memory-swap",
    "1g",
    "-e",
    "HERALD_DISPATCH_CUSTOM_ENDPOINTS=true",
  ];
  const begun = performance.now();
  const one = await startOne(docker, { name: `${name}-1`, image: `${name}:${version}`, volume: `${name}-1`, options });
  await eventually(async () => readGreeting(await one.logs()), waits);
  say(`first start: ${((performance.now() - begun) / 1_000).toFixed(1)} s`);
  const { token: first } = readGreeting(await one.logs());
  await firstStart(one, first);
  say("address, token and link work; each part has its user, its own secrets and, but for 8080, no port outside");
  const token = await resetToken(one, first);
  say("a new admin token ends the old one");

  const demo = await makeProject(docker, simulators, one, token);
  if (process.env.HERALD_TEST_ONLY !== "kills") await loadInMemory(one, docker, demo, say);
  await killEachPart(one, demo, say);
  await killWhileSending(one, demo, say);

  // An upgrade is a newer image on the same volume, also if it is killed in the middle.
  const sent = await docker("exec", one.name, "cat", "/data/.env");
  await docker("stop", one.name);
  await docker("rm", one.name);
  const upgrade = () => startOne(docker, { name: one.name, image: `${name}:${newer}`, volume: `${name}-1`, options });
  let upgraded = await upgrade();
  await eventually(async () => assert.match(await upgraded.logs(), /"service":"bootstrap"|Server is ready/), waits);
  await upgraded.kill();
  await docker("rm", upgraded.name);
  upgraded = await upgrade();
  await untilReady(upgraded);
  assert.equal(await docker("exec", one.name, "cat", "/data/.env"), sent, "the secrets are those of before");
  await killWhileSending(upgraded, { ...demo, gateway: upgraded.url }, say, 1);
  await assert.rejects(
    docker("run", "--rm", "-v", `${name}-1:/data`, `${name}:${version}`),
    /this is Herald 0\.1\.0, and Herald 0\.2\.0 has written \/data/,
  );
  say("upgraded, with a kill in the middle; the older version refuses the volume");

  await backupAndRestore({ one: upgraded, docker, env, tree, image: `${name}:${newer}`, options, demo, token, say });

  const publish = `127.0.0.1:${await freePort()}`;
  const trial = await startOne(docker, {
    name: `${name}-3`,
    image: `${name}:${version}`,
    volume: `${name}-3`,
    options: ["-p", `${publish}:8090`, "-e", `HERALD_PUBLISH_SIMULATORS=${publish}`],
    args: ["--simulators"],
  });
  await eventually(async () => readDemo(await trial.logs()), waits);
  const shell = (command: string, ...args: string[]) => must(command, args, { cwd: tree, env });
  await sendAndOpen(readDemo(await trial.logs()), shell);
  say("with --simulators, the printed commands send and open a push");
}
