import { existsSync, globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { must } from "./must.ts";

/** Other files that state Herald's version. */
const statements: readonly (readonly [file: string, pattern: RegExp])[] = [
  ["CHANGELOG.md", /^## \[([^\]]+)\]/m],
  ["packages/kit/src/version.ts", /version = "([^"]+)"/],
  ["infra/Dockerfile", /^ARG VERSION=(\S+)/m],
  ["docker-compose.yml", /HERALD_VERSION:-([^}]+)\}/],
  ["kits/android/pom.xml", /<version>([^<]+)/],
  ["packages/simulators/README.md", /herald-simulators-([\d.]+)\.tgz/],
  ["README.md", /herald-compose-([\d.]+)\.tar/],
  ["docs/how-to/connect-an-android-app.md", /herald-android:([^"]+)"/],
  ["docs/how-to/connect-an-android-app.md", /herald-android-(\d[\w.]*)-maven/],
  ["docs/reference/openapi.json", /"version": "([^"]+)"/],
  ["docs/reference/asyncapi.json", /"version": "([^"]+)"/],
  ["infra/helm/herald/Chart.yaml", /^version: "?([^"\s]+)/m],
  ["infra/helm/herald/Chart.yaml", /^appVersion: "?([^"\s]+)/m],
];

const manifestsOf = (root: string): string[] => {
  const { workspaces } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as { workspaces: string[] };
  return globSync(
    workspaces.map((folder) => `${folder}/package.json`),
    { cwd: root },
  );
};

/** The version of the root's package.json, which everything else must have too. */
export const versionOf = (root: string): string => {
  const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as { version: string };
  return version;
};

const otherVersions = (root: string, version: string): string[] => {
  const read = (file: string) => readFileSync(join(root, file), "utf8");
  const stated = [
    ...manifestsOf(root).flatMap((file) => {
      const { version: own, dependencies = {}, devDependencies = {} } = JSON.parse(read(file));
      const ours = Object.entries<string>({ ...dependencies, ...devDependencies }).filter(([name]) =>
        name.startsWith("@herald/"),
      );
      return [[file, own], ...ours.map(([name, needed]) => [`${file}, ${name}`, needed])];
    }),
    ...statements.flatMap(([file, pattern]) =>
      existsSync(join(root, file)) ? [[file, pattern.exec(read(file))?.[1] ?? "none"]] : [],
    ),
  ];
  return stated.flatMap(([where, found]) => (found === version ? [] : [`${where} has ${found}`]));
};

/** Names the first few. */
const few = (all: readonly string[]): string =>
  all.length > 5 ? `${all.slice(0, 5).join(", ")} and ${all.length - 5} more` : all.join(", ");

/**
 * Why the tree must not be released as it is: versions that differ, changes that are not committed, a tag that belongs to another commit.
 * Each sentence says what to do. A draft may have the latter two.
 */
export const problemsOf = async (root: string, draft: boolean): Promise<string[]> => {
  const version = versionOf(root);
  const problems: string[] = [];
  const others = otherVersions(root, version);
  if (others.length > 0)
    problems.push(`package.json has version ${version}, but ${few(others)}. Everything has one version: change those.`);
  if (draft) return problems;

  const git = async (...args: string[]) => (await must("git", args, { cwd: root })).split("\n").filter(Boolean);
  const changed = await git("status", "--porcelain");
  if (changed.length > 0) {
    const files = few(changed.map((line) => line.slice(3)));
    problems.push(`Changes are not committed: ${files}. Commit or stash them, or try it out with --draft.`);
  }
  const [head] = await git("rev-parse", "HEAD");
  const [tagged] = await git("rev-parse", "--verify", "--quiet", `refs/tags/v${version}^{commit}`).catch(() => []);
  if (tagged !== undefined && tagged !== head)
    problems.push(
      `The tag v${version} exists, at commit ${tagged.slice(0, 8)}. A version is released once: raise the version, or check out the tag.`,
    );
  const tags = (await git("tag", "--points-at", "HEAD")).filter((tag) => /^v\d/.test(tag) && tag !== `v${version}`);
  if (tags.length > 0)
    problems.push(
      `This commit has the tag ${few(tags)}, but package.json version ${version}. Move the tag, or change the version.`,
    );
  return problems;
};
