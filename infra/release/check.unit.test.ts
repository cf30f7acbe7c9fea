import { execFile, execFileSync } from "node:child_process";
import { cpSync, globSync } from "node:fs";
import { mkdir, mkdtemp, readdir, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { afterEach, beforeEach, expect, test } from "vitest";
import { problemsOf, versionOf } from "./check.ts";
import { problemsOfOptions, readOptions } from "./options.ts";

const root = join(import.meta.dirname, "../..");
let tree: string;
const git = (...args: string[]) =>
  execFileSync("git", ["-c", "user.name=Test", "-c", "user.email=test@example.com", ...args], { cwd: tree });
const put = async (file: string, text: string) => {
  await mkdir(dirname(join(tree, file)), { recursive: true });
  await writeFile(join(tree, file), text);
};
const commit = () => {
  git("add", "--all");
  git("commit", "--quiet", "--no-gpg-sign", "--allow-empty", "--message", "A change");
};

beforeEach(async () => {
  tree = await mkdtemp(join(tmpdir(), "herald-release-test-"));
  git("init", "--quiet");
  const manifest = { name: "@herald/client", version: "1.2.3", devDependencies: { "@herald/contracts": "1.2.3" } };
  await put("package.json", '{ "type": "module", "version": "1.2.3", "workspaces": ["packages/*"] }');
  await put("packages/client/package.json", JSON.stringify(manifest));
  await put("infra/Dockerfile", "ARG VERSION=1.2.3\n");
  commit();
});
afterEach(() => rm(tree, { recursive: true, force: true }));

test("this repository states one version everywhere", async () => {
  expect(await problemsOf(root, true)).toEqual([]);
  expect(versionOf(root)).toMatch(/^\d+\.\d+\.\d+$/);
});

test("a clean tree without its tag, or at its tag, can be released", async () => {
  expect(await problemsOf(tree, false)).toEqual([]);
  git("tag", "v1.2.3");
  expect(await problemsOf(tree, false)).toEqual([]);
});

test("changes that are not committed are named", async () => {
  for (const name of ["a", "b", "c", "d", "e", "f"]) await put(name, "");
  expect(await problemsOf(tree, false)).toEqual([
    "Changes are not committed: a, b, c, d, e and 1 more. Commit or stash them, or try it out with --draft.",
  ]);
  expect(await problemsOf(tree, true)).toEqual([]);
});

test("a version that is tagged elsewhere is not released again", async () => {
  git("tag", "--no-sign", "--annotate", "--message", "The first", "v1.2.3");
  commit();
  expect(await problemsOf(tree, false)).toEqual([
    expect.stringMatching(
      /^The tag v1\.2\.3 exists, at commit [0-9a-f]{8}\. .* raise the version, or check out the tag\.$/,
    ),
  ]);
  expect(await problemsOf(tree, true)).toEqual([]);
});

test("a commit with the tag of another version is not released", async () => {
  git("tag", "v1.3.0");
  expect(await problemsOf(tree, false)).toEqual([
    "This commit has the tag v1.3.0, but package.json version 1.2.3. Move the tag, or change the version.",
  ]);
});

test("differing versions are named, also in a draft", async () => {
  await put("packages/client/package.json", '{ "version": "1.2.2", "dependencies": { "@herald/kit": "1.2.1" } }');
  await put("infra/Dockerfile", "ARG VERSION=1.0.0\n");
  await put("infra/helm/herald/Chart.yaml", 'version: 1.2.3\nappVersion: "1.2.2"\n');
  expect(await problemsOf(tree, true)).toEqual([
    "package.json has version 1.2.3, but packages/client/package.json has 1.2.2, packages/client/package.json, @herald/kit has 1.2.1, " +
      "infra/Dockerfile has 1.0.0, infra/helm/herald/Chart.yaml has 1.2.2. Everything has one version: change those.",
  ]);
});

test("wrong options are all named at once", async () => {
  expect(() => readOptions(["--frob"])).toThrow("--frob");
  await put("out/notes.txt", "mine");
  const words = ["--registry", "Docker.io", "--repository", "herald", "--platforms", "linux/arm64"];
  const wrong = readOptions([...words, "--out", join(tree, "out")]);
  expect(problemsOfOptions(wrong, { engine: "no engine", maven: "no Maven" })).toEqual([
    '--registry is a host and a path in lower case, such as ghcr.io/owner/herald, not "Docker.io".',
    '--repository is an address such as https://github.com/owner/herald, not "herald".',
    "The library for Android needs Maven and Java: install them, or try it out with --draft. `mvn --version` says: no Maven",
    "--platforms needs --layouts: an engine keeps only images for its own processor.",
    `--out must be a new folder, an empty one or an earlier release; ${join(tree, "out")} has other files.`,
  ]);
  const complete = { engine: undefined, maven: undefined };
  const withoutEngine = { ...complete, engine: "no engine" };
  const repository = ["--repository", "https://github.com/owner/herald"];
  const pushed = readOptions([
    "--registry",
    "127.0.0.1:5000/herald",
    "--push",
    ...repository,
    "--out",
    join(tree, "new"),
  ]);
  const draft = readOptions(["--draft", "--out", join(tree, "new")]);
  expect(problemsOfOptions(draft, { engine: "no engine", maven: "no Maven" })).toEqual([]);
  expect(problemsOfOptions(readOptions(["--out", join(tree, "new")]), complete)).toEqual([
    '--registry is a host and a path in lower case, such as ghcr.io/owner/herald, not "".',
    '--repository is an address such as https://github.com/owner/herald, not "".',
  ]);
  expect(problemsOfOptions(pushed, withoutEngine)).toEqual([
    "--push needs a container engine: start one, or leave --push out. `docker version` says: no engine",
  ]);
  expect(problemsOfOptions(pushed, complete)).toEqual([]);
  expect(problemsOfOptions({ ...pushed, layouts: tree }, complete)).toEqual([
    "--push and --layouts exclude each other: either this command pushes the images, or another one does.",
  ]);
  const written = { ...pushed, push: false, layouts: tree, platforms: "linux/arm64" };
  expect(problemsOfOptions(written, complete)).toEqual([]);
  expect(problemsOfOptions(written, withoutEngine)).toEqual([
    "--layouts needs a container engine: start one, or leave --layouts out. `docker version` says: no engine",
  ]);
  await put("new/SHA256SUMS", "");
  expect(problemsOfOptions(pushed, complete)).toEqual([]);
});

test("it exits with 1 before it builds anything", async () => {
  // The command finds its tree by its own place.
  for (const file of globSync("infra/release/*.ts", { cwd: root })) cpSync(join(root, file), join(tree, file));
  await symlink(join(root, "node_modules"), join(tree, "node_modules"));
  const words = [join(tree, "infra/release/main.ts"), "--registry", "example.com/herald"];
  words.push("--repository", "https://example.com/herald");
  const run = promisify(execFile)(process.execPath, ["--conditions=@herald/source", ...words], { cwd: tree });
  await expect(run).rejects.toMatchObject({
    code: 1,
    stdout: "",
    stderr: expect.stringMatching(/^(The library for Android needs .*\n)?Changes are not committed: .*infra\/release/),
  });
  expect(await readdir(tree)).not.toContain("dist");
});
