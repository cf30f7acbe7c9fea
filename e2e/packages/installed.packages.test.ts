import { type ChildProcess, spawn } from "node:child_process";
import { copyFile, mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePort } from "@herald/provision";
import { eventually } from "@herald/testing";
import { afterAll, beforeAll, describe, expect, inject, test } from "vitest";
import { apnsToken, type Project } from "../harness/project.ts";
import { codeBlocks } from "../harness/shell-blocks.ts";
import { logOnFailure, type System, startSystem } from "../harness/system.ts";
import { fetchNodes, fetchTools, type NodeProgram, run } from "./tools.ts";

const root = join(import.meta.dirname, "../..");
const release = inject("heraldRelease");
const nodes = await fetchNodes();
const names = ["client", "web", "cli", "simulators"];
let system: System;
let project: Project;
let folder: string;
let version: string;
let registry: { readonly url: string; readonly process: ChildProcess };

/** A registry that knows no other, so that what is installed from it is ours. */
const startRegistry = async () => {
  const { verdaccio } = await fetchTools();
  const home = join(folder, "verdaccio");
  await mkdir(home);
  const port = await freePort();
  const config = {
    storage: join(home, "storage"),
    auth: { htpasswd: { file: join(home, "htpasswd"), max_users: -1 } },
    uplinks: {},
    packages: { "**": { access: "$all", publish: "$all" } },
    log: { type: "file", path: join(home, "log"), level: "warn" },
  };
  await writeFile(join(home, "config.yaml"), JSON.stringify(config)); // JSON is YAML
  const args = ["--config", join(home, "config.yaml"), "--listen", `127.0.0.1:${port}`];
  const child = spawn(process.execPath, [verdaccio, ...args], { cwd: home, stdio: "ignore" });
  const url = `http://127.0.0.1:${port}`;
  await eventually(async () => expect((await fetch(`${url}/-/ping`)).status).toBe(200), { timeoutMs: 60_000 });
  return { url, process: child };
};

/** npm and every program with this Node, with settings and a cache of their own. */
const environmentOf = ({ bin }: NodeProgram): NodeJS.ProcessEnv => ({
  PATH: `${bin}:/usr/local/bin:/usr/bin:/bin`,
  HOME: join(folder, "home"),
  HERALD_URL: system.gateway,
  HERALD_TOKEN: project.token,
});

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "herald-installed-"));
  await mkdir(join(folder, "home"));
  ({ version } = JSON.parse(await readFile(join(root, "package.json"), "utf8")));
  [system, registry] = await Promise.all([startSystem(), startRegistry()]);
  project = await system.project("Installed");
  // A registry wants to know who publishes; this one takes everybody.
  const settings = `registry=${registry.url}/\n//${new URL(registry.url).host}/:_authToken=anyone\nengine-strict=true\n`;
  await writeFile(join(folder, "home/.npmrc"), settings);
  const env = environmentOf(nodes.at(-1) as NodeProgram);
  const publish = async (name: string) => {
    const file = join(release, `herald-${name}-${version}.tgz`);
    const published = await run("npm", ["publish", file], { cwd: folder, env });
    expect(published, published.stderr).toMatchObject({ exitCode: 0 });
  };
  await Promise.all(names.map(publish));
});
afterAll(async () => {
  registry?.process.kill();
  await system?.stop();
  await rm(folder, { recursive: true, force: true });
});
logOnFailure(() => system);

/** The program of the project's README, as someone who has read it writes it. */
const readmeProgram = async (): Promise<string> => {
  const [program = ""] = codeBlocks(await readFile(join(root, "README.md"), "utf8"), "Send from TypeScript", "ts");
  expect(program).toContain('from "@herald/client"');
  return program;
};

const tarballOf = (name: string) => join(release, `herald-${name}-${version}.tgz`);

const fromRegistry = (node: NodeProgram) => ({
  node,
  from: "a registry",
  packages: () => names.map((name) => `@herald/${name}`),
});
/** From files too, by the oldest npm alone: what is installed is the same. */
const fromFiles = {
  node: nodes[0] as NodeProgram,
  from: "its tarballs",
  packages: () => names.map(tarballOf),
};

describe.concurrent.each([...nodes.map(fromRegistry), fromFiles])(
  "installed from $from on Node $node.name",
  ({ node, from, packages }) => {
    let home: string;
    const herald = (...words: string[]) =>
      run(join(home, "node_modules/.bin/herald"), words, { cwd: home, env: environmentOf(node) });

    beforeAll(async () => {
      home = join(folder, `${node.name} ${from}`);
      await mkdir(home);
      const env = environmentOf(node);
      expect((await run("node", ["--version"], { cwd: home, env })).stdout).toBe(`v${node.name}\n`);
      await writeFile(join(home, "package.json"), '{ "type": "module", "private": true }');
      const installed = await run("npm", ["install", "--no-audit", "--no-fund", ...packages()], { cwd: home, env });
      expect(installed, installed.stderr).toMatchObject({
        exitCode: 0,
        stdout: expect.stringContaining("added 4 packages"),
      });
      expect(await readdir(join(home, "node_modules/@herald"))).toEqual(["cli", "client", "simulators", "web"]);
    });

    test("the client sends as the README says", async () => {
      await project.register({ topics: ["news"] });
      const program = await readmeProgram();
      const known = "const { HERALD_URL: url, HERALD_TOKEN: token } = process.env;\n";
      await writeFile(join(home, "send.mjs"), `${known}${program}console.log(JSON.stringify(counts));\n`);
      const sent = await run("node", ["send.mjs"], { cwd: home, env: environmentOf(node) });
      expect(sent, sent.stderr).toMatchObject({ exitCode: 0, stderr: "" });
      const { devices, accepted } = JSON.parse(sent.stdout);
      expect(devices).toBeGreaterThan(0);
      expect(accepted).toBe(devices);
    });

    test("the command line sends, and says its version", async () => {
      expect(await herald("--version")).toEqual({ exitCode: 0, stdout: `${version}\n`, stderr: "" });
      const token = apnsToken();
      await project.register({ token });
      const sent = await herald("send", "--title", "Hello", "--to", `token:${token}`, "--watch", "--json");
      expect(sent, sent.stderr).toMatchObject({ exitCode: 0 });
      expect(sent.stdout).toMatch(/"accepted":\s*1\b/);
      expect(await herald("frob")).toMatchObject({ exitCode: 2, stdout: "" });
    });

    test("the command line sends as its README says", async () => {
      const readme = await readFile(join(home, "node_modules/@herald/cli/README.md"), "utf8");
      const { PATH, ...env } = environmentOf(node);
      const sent = await run("sh", ["-ec", codeBlocks(readme, "First push", "sh").join("\n")], {
        cwd: home,
        env: { ...env, PATH: `${join(home, "node_modules/.bin")}:${PATH}` },
      });
      expect(sent, sent.stderr).toMatchObject({ exitCode: 0, stdout: expect.stringMatching(/completed/) });
    });

    test("the simulators start, and show what they got", async () => {
      const program = `import { startSimulators } from "@herald/simulators";
        const simulators = await startSimulators();
        const info = await fetch(simulators.control.url + "/info").then((answer) => answer.json());
        console.log(info.apns === simulators.apns.url, simulators.pushes().length);
        await simulators.stop();`;
      await writeFile(join(home, "simulate.mjs"), program);
      const ran = await run("node", ["simulate.mjs"], { cwd: home, env: environmentOf(node) });
      expect(ran).toEqual({ exitCode: 0, stdout: "true 0\n", stderr: "" });
    });

    test("a reader that takes one line of the help gets it without an error", async () => {
      const script = "set -o pipefail; node_modules/.bin/herald --help | head -1";
      const read = () => run("bash", ["-c", script], { cwd: home, env: environmentOf(node) });
      // How much of the help is written when the reader ends differs from time to time.
      for (const answer of await Promise.all([read(), read(), read(), read(), read()]))
        expect(answer).toEqual({ exitCode: 0, stdout: "Usage: herald [options] [command]\n", stderr: "" });
    });
  },
);

test("the README's commands install the client and the command line", async () => {
  const home = join(folder, "readme");
  await mkdir(home);
  const blocks = codeBlocks(await readFile(join(root, "README.md"), "utf8"), "From a release", "sh");
  const block = String(blocks.find((text) => text.startsWith("npm install")));
  for (const name of ["client", "cli"]) await copyFile(tarballOf(name), join(home, `herald-${name}-${version}.tgz`));
  const env = { ...environmentOf(nodes.at(-1) as NodeProgram), npm_config_prefix: join(home, "global") };
  expect(await run("sh", ["-ec", block], { cwd: home, env })).toMatchObject({ exitCode: 0 });
  const herald = await run(join(home, "global/bin/herald"), ["--version"], { cwd: home, env });
  expect(herald.stdout).toBe(`${version}\n`);
  expect(await readdir(join(home, "node_modules/@herald"))).toEqual(["client"]);
});

test("the test of the simulators' README passes, installed as it says, and its types are right", async () => {
  const home = join(folder, "simulated");
  await mkdir(join(home, "node_modules"), { recursive: true });
  await writeFile(join(home, "package.json"), '{ "type": "module", "private": true }');
  await copyFile(tarballOf("simulators"), join(home, `herald-simulators-${version}.tgz`));
  const page = await readFile(join(root, "packages/simulators/README.md"), "utf8");
  const env = environmentOf(nodes.at(-1) as NodeProgram);
  const [install = ""] = codeBlocks(page, "In your tests", "sh");
  expect(await run("sh", ["-ec", install], { cwd: home, env })).toMatchObject({ exitCode: 0 });
  for (const name of ["vitest", "@types"])
    await symlink(join(root, "node_modules", name), join(home, "node_modules", name));
  await writeFile(join(home, "push.test.ts"), String(codeBlocks(page, "In your tests", "ts")[0]));
  const ran = await run("node", ["node_modules/vitest/vitest.mjs", "run", "--root", home], { cwd: home, env });
  expect(ran, ran.stdout + ran.stderr).toMatchObject({ exitCode: 0, stdout: expect.stringMatching(/1 passed/) });
  const options = [
    "--noEmit",
    "--strict",
    "--exactOptionalPropertyTypes",
    "--module",
    "nodenext",
    "--target",
    "es2023",
  ];
  const checked = await run(join(root, "node_modules/.bin/tsc"), [...options, "--types", "node", "push.test.ts"], {
    cwd: home,
  });
  expect(checked).toEqual({ exitCode: 0, stdout: "", stderr: "" });
});

/** What a backend and a site write, and what the types must refuse. */
const typed = `
export const opened = (data: EventData["io.herald.notification.opened.v1"]): string => data.notification_id;
export const name: EventType = "io.herald.notification.completed.v1";
export const status = (device: Device): "active" | "inactive" | (string & {}) => device.status;
// @ts-expect-error no target has this prefix
void new Herald({ url: "", token: "" }).notifications.send({ title: "Hello", targets: ["nonsense:x"] });
// @ts-expect-error no event has this type
export const wrong: keyof EventData = "io.herald.nothing.v1";
const site = createHerald({ gateway: "https://push.example.com", project: "prj_1", onChange: console.log });
await site.subscribe();
`;

test.each([
  ["nodenext", "nodenext"],
  ["esnext", "bundler"],
])("the installed types check an example: module %s, resolved by %s", async (module, resolution) => {
  const home = join(folder, `${(nodes.at(-1) as NodeProgram).name} a registry`);
  const imports = `import type { Device, EventData, EventType } from "@herald/client";\nimport { createHerald } from "@herald/web";\n`;
  const known = "declare const url: string, token: string;\n";
  const file = join(home, `example-${resolution}.ts`);
  await writeFile(
    file,
    `${imports}${known}${await readmeProgram()}export const all: number = counts.devices;\n${typed}`,
  );
  const flags = ["--noEmit", "--strict", "--exactOptionalPropertyTypes", "--target", "es2022", "--types", ""];
  const args = [
    ...flags,
    "--module",
    module,
    "--moduleResolution",
    resolution,
    "--lib",
    "es2023,dom,dom.asynciterable",
  ];
  const checked = await run(join(root, "node_modules/.bin/tsc"), [...args, file], { cwd: home });
  expect(checked).toEqual({ exitCode: 0, stdout: "", stderr: "" });
});
