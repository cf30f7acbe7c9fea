import { execFile } from "node:child_process";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { cacheFolder, provision } from "@herald/provision";
import { must } from "../../infra/release/must.ts";
import { goProgram } from "../test-tools.ts";

const progress = (line: string) => void process.stderr.write(`${line}\n`);

/** Installs npm packages into the cache, once. They take 100 MB, which no other command of this repository needs. */
const fetchPackages = async (name: string, manifest: object): Promise<string> => {
  const folder = await provision({ cache: cacheFolder(process.env), name, progress }, async (building) => {
    progress(`${name}: installing`);
    await writeFile(join(building, "package.json"), JSON.stringify({ private: true, ...manifest }));
    await must("npm", ["install", "--no-audit", "--no-fund", "--ignore-scripts"], { cwd: building });
  });
  return join(folder, "node_modules");
};

/** The checkers of packages, and a registry for npm. */
export const fetchTools = async () => {
  const modules = await fetchPackages("package-tools-1", {
    dependencies: { "@arethetypeswrong/cli": "0.18.5", publint: "0.3.25", verdaccio: "6.10.4" },
    // verdaccio asks for a tag of it, which registries may not have.
    overrides: { "node-fetch": "2.7.0" },
  });
  const bin = (name: string) => join(modules, ".bin", name);
  return { attw: bin("attw"), publint: bin("publint"), verdaccio: bin("verdaccio") };
};

/** The folder of modules with what `expo prebuild` runs plugins by, and with what tells Gradle of an app's packages. */
export const fetchExpo = (): Promise<string> =>
  fetchPackages("expo-tools-1", {
    dependencies: { "@expo/config-plugins": "58.0.13", "expo-modules-autolinking": "58.1.0" },
  });

/** actionlint, or why it is not here. */
export const fetchActionlint = async (): Promise<{ readonly path: string } | { readonly why: string }> => {
  const module = "github.com/rhysd/actionlint/cmd/actionlint@v1.7.12";
  return goProgram("actionlint-1.7.12", module, { env: process.env, progress }).then(
    (folder) => ({ path: join(folder, "actionlint") }),
    (error: Error) => ({ why: error.message }),
  );
};

export type NodeProgram = { readonly name: string; readonly bin: string };

/** The oldest Node that the packages accept, and the newest of the version after it. */
const olderNodes = ["20.19.0", "22.23.3"];
const platformsWithPackages = ["linux-x64", "linux-arm64"];

/** The folders of the Node versions that packages are tried on; the last one is that of this run. */
export const fetchNodes = async (): Promise<NodeProgram[]> => {
  const platform = `${process.platform}-${process.arch}`;
  const nodes: NodeProgram[] = [];
  if (!platformsWithPackages.includes(platform))
    progress(`SKIPPED: Node ${olderNodes.join(" and ")}, because npm has no package of them for ${platform}`);
  else
    for (const version of olderNodes) {
      const modules = await fetchPackages(`node-${version}`, { dependencies: { [`node-${platform}`]: version } });
      nodes.push({ name: version, bin: join(modules, `node-${platform}`, "bin") });
    }
  return [...nodes, { name: process.versions.node, bin: join(process.execPath, "..") }];
};

export type Ran = { readonly exitCode: number; readonly stdout: string; readonly stderr: string };

/** Runs a program to its end, whatever its exit code. */
export const run = async (
  command: string,
  args: readonly string[],
  options: { readonly cwd: string; readonly env?: NodeJS.ProcessEnv },
): Promise<Ran> => {
  try {
    return { exitCode: 0, ...(await promisify(execFile)(command, args, { ...options, maxBuffer: 16_000_000 })) };
  } catch (error) {
    const { code, stdout = "", stderr = "" } = error as { code?: number | string } & Partial<Ran>;
    if (typeof code !== "number") throw error;
    return { exitCode: code, stdout, stderr };
  }
};
