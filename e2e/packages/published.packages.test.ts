import { mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, inject, test } from "vitest";
import herald from "../../package.json" with { type: "json" };
import { registry, repository } from "./build-release.ts";
import { fetchActionlint, fetchTools, run } from "./tools.ts";

const root = join(import.meta.dirname, "../..");
const release = inject("heraldRelease");
let folder: string;
let tools: Awaited<ReturnType<typeof fetchTools>>;
let version: string;

beforeAll(async () => {
  tools = await fetchTools();
  folder = await mkdtemp(join(tmpdir(), "herald-published-"));
  ({ version } = JSON.parse(await readFile(join(root, "package.json"), "utf8")));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

const library = `herald-android-${herald.version}-maven.zip`;
const { exitCode } = await run("mvn", ["--version"], { cwd: root }).catch(() => ({ exitCode: 1 }));
const hasMaven = exitCode === 0;

const tarball = (name: string) => join(release, `herald-${name}-${version}.tgz`);
const unpack = async (archive: string, into: string) => {
  expect(await run("tar", ["-xzf", archive, `--one-top-level=${into}`], { cwd: folder })).toMatchObject({
    exitCode: 0,
  });
};

test("a release has every artefact, and the checksum of each", async () => {
  const files = (await readdir(release)).toSorted();
  expect(files).toEqual(
    [
      "SHA256SUMS",
      `herald-${version}.asyncapi.json`,
      `herald-${version}.openapi.json`,
      ...["cli", "client", "react-native", "simulators", "web"].map((name) => `herald-${name}-${version}.tgz`),
      `herald-${version}.evaluation.yaml`,
      `herald-${version}.nats-values.yaml`,
      `herald-${version}.tgz`,
      `herald-compose-${version}.tar.gz`,
      "images.json",
      ...(hasMaven ? [library] : []),
    ].toSorted(),
  );
  const checked = await run("sha256sum", ["--check", "--quiet", "SHA256SUMS"], { cwd: release });
  expect(checked).toEqual({ exitCode: 0, stdout: "", stderr: "" });
  const sums = await readFile(join(release, "SHA256SUMS"), "utf8");
  expect(sums.trim().split("\n")).toHaveLength(files.length - 1);
});

test.runIf(hasMaven)("the library for Android is a Maven repository", async () => {
  const { stdout } = await run("unzip", ["-Z1", join(release, library)], { cwd: folder });
  const files = stdout
    .trim()
    .split("\n")
    .filter((file) => !file.endsWith("/"));
  const ends = [".aar", ".pom", "-sources.jar", "-javadoc.jar"].flatMap((end) => [end, `${end}.sha256`]);
  const place = `io/herald/herald-android/${version}/herald-android-${version}`;
  expect(files.toSorted()).toEqual(ends.map((end) => `${place}${end}`).toSorted());
  const pom = await run("unzip", ["-p", join(release, library), `${place}.pom`], { cwd: folder });
  expect(pom.stdout).toContain(`<url>${repository}</url>`);
});

/** Bytes of the packed file. What the client takes in a bundle is in `package.unit.test.ts`. */
const maxPackedBytes = { client: 53_248, web: 20_480, cli: 1_048_576, "react-native": 131_072, simulators: 524_288 };

/** Files of a package beside its code, and how Node reads its `.js` at the root: Expo requires the plugin. */
const more: Record<string, RegExp> = {
  "react-native": /^package\/(app\.plugin\.js|expo-module\.config\.json|dist\/package\.json|android\/[\w./-]+)$/,
};
const typeOf = (name: string) => (name === "react-native" ? "commonjs" : "module");

describe.each(Object.entries(maxPackedBytes))("@herald/%s", (name, maxBytes) => {
  test("is small, and holds no sources, no tests and no script that runs at its installation", async () => {
    expect((await stat(tarball(name))).size).toBeLessThanOrEqual(maxBytes);
    const { stdout } = await run("tar", ["-tzf", tarball(name)], { cwd: folder });
    const files = stdout.trim().split("\n");
    const expected = /^package\/(package\.json|README\.md|LICENSE|THIRD_PARTY_NOTICES|dist\/[\w/-]+(\.js|\.d\.ts))$/;
    expect(files.filter((file) => !expected.test(file) && !more[name]?.test(file))).toEqual([]);
    expect(files).toEqual(expect.arrayContaining(["package/LICENSE", "package/README.md"]));
    const read = (file: string) => run("tar", ["-xzOf", tarball(name), `package/${file}`], { cwd: folder });
    const manifest = JSON.parse((await read("package.json")).stdout);
    expect(manifest).toMatchObject({
      version,
      license: "Apache-2.0",
      type: typeOf(name),
      engines: { node: ">=20.19" },
    });
    expect(manifest.repository.url).toBe(`git+${repository}.git`);
    for (const key of ["private", "scripts", "dependencies", "devDependencies"])
      expect(manifest).not.toHaveProperty(key);
  });

  test("has each file that its manifest and its README name", async () => {
    const { stdout } = await run("tar", ["-tzf", tarball(name)], { cwd: folder });
    const files = stdout.trim().split("\n");
    const read = (file: string) => run("tar", ["-xzOf", tarball(name), `package/${file}`], { cwd: folder });
    const manifest = JSON.parse((await read("package.json")).stdout);
    const has = (file: string) => files.some((one) => one === `package/${file}` || one.startsWith(`package/${file}/`));
    expect(manifest.files.filter((file: string) => !has(file))).toEqual([]);
    const targets = JSON.stringify([manifest.exports, manifest.bin]).match(/(?<=")(\.\/|dist\/)[^"]+(?=":?)/g) ?? [];
    const missing = targets.filter((target) => !has(target.replace("./", "")) && !(target in manifest.exports));
    expect(missing).toEqual([]);
    const readme = (await read("README.md")).stdout;
    const prose = readme.replace(/^```.*?^```$/gms, "");
    // What begins with a dot is made where the program runs.
    const named = [...prose.matchAll(/`([\w-][\w.-]*(?:\/[\w.-]+)*(?:\/|\.(?:[cm]?[jt]s|json|kt)))`/g)].map(
      ([, file]) => file,
    );
    expect(
      named.filter((file = "") => !files.some((one) => `${one}/`.includes(`/${file.replace(/\/$/, "")}/`))),
    ).toEqual([]);
    const anchors = [...prose.matchAll(/^#+ (.+)$/gm)].map(
      ([, heading = ""]) => `#${heading.toLowerCase().replaceAll(" ", "-")}`,
    );
    for (const [, link = ""] of readme.matchAll(/\]\(([^)\s]+)\)/g)) {
      if (anchors.includes(link)) continue;
      expect(link).toMatch(/^https:\/\//);
      const [path] = link.split("#");
      if (path?.startsWith(repository)) await stat(join(root, path.slice(`${repository}/blob/v${version}/`.length)));
    }
  });

  test("passes publint", async () => {
    expect(await run(tools.publint, ["run", tarball(name), "--strict"], { cwd: folder })).toMatchObject({
      exitCode: 0,
      stdout: expect.stringContaining("All good!"),
    });
  });
});

test.each([
  ["client", []],
  ["simulators", []],
  // A script to serve, which nothing imports.
  ["web", ["--exclude-entrypoints", "./herald-worker.js"]],
  ["react-native", ["--exclude-entrypoints", "./app.plugin.js"]],
])("the types of @herald/%s resolve for every importer of ES modules", async (name, flags) => {
  const { exitCode, stdout } = await run(
    tools.attw,
    [tarball(name), "--profile", "esm-only", "--no-color", "--no-emoji", ...flags],
    { cwd: folder },
  );
  expect({ exitCode, stdout }).toEqual({ exitCode: 0, stdout: expect.stringContaining("OK (ESM)") });
});

test.each(["client", "cli", "react-native"])("@herald/%s has lines that a stack trace can show", async (name) => {
  const { stdout } = await run("tar", ["-xzOf", tarball(name), "--wildcards", "package/dist/*.js"], { cwd: folder });
  const lines = stdout.split("\n");
  expect(lines.length).toBeGreaterThan(300);
  expect(lines.filter((line) => line.length > 1_000)).toEqual([]);
});

test.each(["web", "react-native"])("the code of the README of @herald/%s compiles with its types", async (name) => {
  const home = join(folder, `readme-${name}`);
  const installed = join(home, "node_modules/@herald", name);
  await mkdir(installed, { recursive: true });
  const unpacked = ["-xzf", tarball(name), "--strip-components", "1", "-C", installed];
  expect(await run("tar", unpacked, { cwd: folder })).toMatchObject({ exitCode: 0 });
  const [block = ""] = /(?<=^```ts\n).*?(?=^```$)/ms.exec(await readFile(join(installed, "README.md"), "utf8")) ?? [];
  expect(block).toContain(`from "@herald/${name}"`);
  await writeFile(join(home, "readme.mts"), block);
  const flags = ["--noEmit", "--strict", "--module", "nodenext", "--target", "es2023", "--lib", "es2023,dom"];
  const checked = await run(join(root, "node_modules/.bin/tsc"), [...flags, "--types", "", "readme.mts"], {
    cwd: home,
  });
  expect(checked).toEqual({ exitCode: 0, stdout: "", stderr: "" });
});

test("the command line is one file, and names the licences of the libraries in it", async () => {
  const { stdout } = await run("tar", ["-tzf", tarball("cli")], { cwd: folder });
  expect(stdout.match(/dist\/.*/g)).toEqual(["dist/herald.js"]);
  const notices = await run("tar", ["-xzOf", tarball("cli"), "package/THIRD_PARTY_NOTICES"], { cwd: folder });
  expect(notices.stdout).toMatch(/^commander \d+\.\d+\.\d+, MIT\n.*Permission is hereby granted/s);
});

test("the archive has all that its compose file mounts, and init writes what it requires", async () => {
  await unpack(join(release, `herald-compose-${version}.tar.gz`), "compose");
  const archive = join(folder, "compose", `herald-compose-${version}`);
  const compose = await readFile(join(archive, "compose.yaml"), "utf8");
  for (const [, file = ""] of compose.matchAll(/\.\/(infra\/[^:\s]+):/g)) await stat(join(archive, file));
  expect(compose).toContain(`image: ${registry}/gateway:${version}\n`);
  expect(await run("infra/init", ["--simulators"], { cwd: archive })).toMatchObject({ exitCode: 0 });
  const settings = await readFile(join(archive, ".env"), "utf8");
  const required = [...compose.matchAll(/\$\{(\w+):\?/g)].map(([, name]) => name);
  expect(required.length).toBeGreaterThan(10);
  expect(required.filter((name) => !settings.includes(`\n${name}=`))).toEqual([]);
  expect(await readFile(join(archive, "README.md"), "utf8")).toContain(`${repository}/tree/v${version}/docs`);
});

test("the workflows are valid", async () => {
  const actionlint = await fetchActionlint();
  if ("why" in actionlint) {
    process.stderr.write(`SKIPPED: actionlint, because ${actionlint.why}\n`);
    return;
  }
  // Both are on some machines and not on others.
  const flags = ["-shellcheck=", "-pyflakes=", "-no-color"];
  expect(await run(actionlint.path, flags, { cwd: root })).toEqual({ exitCode: 0, stdout: "", stderr: "" });
});
