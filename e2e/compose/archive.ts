import assert from "node:assert/strict";
import { appendFile, copyFile, mkdir, mkdtemp, readFile, rm, stat, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePort, startProcess } from "@herald/provision";
import { eventually } from "@herald/testing";
import { must } from "../../infra/release/must.ts";
import { shellBlocks } from "../harness/shell-blocks.ts";
import { goProgram } from "../test-tools.ts";
import { readDemo, sendAndOpen } from "./first-push.ts";

const root = join(import.meta.dirname, "../..");
const distribution = { version: "v3.1.2", module: "github.com/distribution/distribution/v3/cmd/registry" };

type Engine = { readonly local: boolean; readonly say: (line: string) => void };

/** A registry of images on this machine, to which every engine pushes without TLS. */
const startRegistry = async (folder: string, env: NodeJS.ProcessEnv, say: Engine["say"]) => {
  const { version, module } = distribution;
  const fetching = { env: process.env, progress: say };
  const programs = await goProgram(`distribution-${version}`, `${module}@${version}`, fetching);
  const host = `127.0.0.1:${await freePort()}`;
  const storage = { filesystem: { rootdirectory: join(folder, "registry") } };
  const settings = join(folder, "registry.yml");
  await writeFile(settings, JSON.stringify({ version: 0.1, storage, http: { addr: host } })); // JSON is YAML
  const registry = await startProcess({
    name: "registry",
    command: join(programs, "registry"),
    args: ["serve", settings],
    env: { ...env, OTEL_TRACES_EXPORTER: "none" },
    stopSignal: "SIGTERM",
    stopTimeoutMs: 10_000,
    output: { file: join(folder, "registry.log") },
  });
  await eventually(async () => assert.equal((await fetch(`http://${host}/v2/`)).status, 200));
  return { host, stop: () => registry.stop() };
};

/** Makes the tree a clean clone with the tools that `npm ci` installs, and releases it. Returns the release's folder. */
const release = async (tree: string, registry: string, env: NodeJS.ProcessEnv): Promise<string> => {
  const here = { cwd: tree, env };
  await symlink(join(root, "node_modules"), join(tree, "node_modules"));
  const author = ["-c", "user.name=Test", "-c", "user.email=test@example.com"];
  await must("git", ["init", "--quiet"], here);
  await must("git", ["add", "--all"], here);
  await must("git", [...author, "commit", "--quiet", "--no-gpg-sign", "--message", "A tree"], here);
  const out = join(tree, "dist/release");
  const main = ["--conditions=@herald/source", join(tree, "infra/release/main.ts")];
  await must(process.execPath, [...main, "--registry", `${registry}/herald`, "--push", "--draft", "--out", out], here);
  return out;
};

/** The commands of the README that start from an archive, one a line. */
const readmeCommands = async (tree: string): Promise<string[]> => {
  const blocks = shellBlocks(await readFile(join(tree, "README.md"), "utf8"), "From a release");
  return (blocks.find((block) => block.startsWith("tar ")) ?? "").trim().split("\n");
};

/** Releases the tree to a registry, and starts Herald from the archive as the README says, in an empty folder. Then it sends and opens a push. */
export const tryArchive = async (tree: string, env: NodeJS.ProcessEnv, { local, say }: Engine): Promise<void> => {
  const folder = await mkdtemp(join(tmpdir(), "herald-archive-"));
  const registry = await startRegistry(folder, env, say);
  try {
    const begunAt = performance.now();
    const released = await release(tree, registry.host, env);
    say(`released to ${registry.host}: ${((performance.now() - begunAt) / 1_000).toFixed(1)} s`);
    const { version } = JSON.parse(await readFile(join(tree, "package.json"), "utf8")) as { version: string };
    const user = join(folder, "user");
    await mkdir(user);
    const home = join(user, `herald-compose-${version}`);
    // A project of the archive's own name could be someone's.
    const own = { ...env, COMPOSE_PROJECT_NAME: `${env.COMPOSE_PROJECT_NAME}-archive` };
    const run = (command: string, ...args: string[]) => must(command, args, { cwd: home, env: own });
    const begun = performance.now();
    const [unpack = "", init = "", up = "", makeDemo = "", ...others] = await readmeCommands(tree);
    assert.deepEqual(others, []);
    await copyFile(join(released, `herald-compose-${version}.tar.gz`), join(user, `herald-compose-${version}.tar.gz`));
    await must("sh", ["-ec", unpack], { cwd: user, env: own });
    const file = join(home, "compose.yaml");
    const compose = await readFile(file, "utf8");
    const ours = [...compose.matchAll(/^ +image: (?:&\w+ )?(\S+\/herald\/\S+)$/gm)].map(([, image]) => image);
    assert.equal(ours.length, 6, "images of Herald, that of the simulators for two services");
    for (const image of ours)
      assert.match(image ?? "", /^127\.0\.0\.1:\d+\/herald\/[a-z]+:[\d.]+@sha256:[0-9a-f]{64}$/);
    // The database that stands in here has no digest.
    if (local) await writeFile(file, compose.replaceAll(/(image: mongo:\S+)@sha256:\w+/g, "$1"));
    await run("sh", "-ec", init);
    assert.equal(((await stat(join(home, ".env"))).mode & 0o777).toString(8), "600");
    for (const part of ["GATEWAY", "GATEWAY_ADMIN", "NATS", "SIMULATORS"])
      await appendFile(join(home, ".env"), `HERALD_PUBLISH_${part}=127.0.0.1:${await freePort()}\n`);
    try {
      await run("sh", "-ec", up);
      const demo = readDemo(await run("sh", "-ec", makeDemo));
      await sendAndOpen(demo, run);
      say(`archive to a push that is opened, in 4 commands: ${((performance.now() - begun) / 1_000).toFixed(1)} s`);
    } catch (error) {
      say(await run("docker", "compose", "logs", "--no-color", "--tail", "40").catch(() => ""));
      throw error;
    } finally {
      await run("docker", "compose", "--profile", "*", "down", "--volumes").catch(() => {});
      await run("docker", "image", "rm", "--force", ...new Set(ours as string[])).catch(() => {});
    }
  } finally {
    await registry.stop();
    await rm(folder, { recursive: true, force: true });
  }
};
