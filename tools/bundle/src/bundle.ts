import { join } from "node:path";
import { isCurrent } from "./built-files.ts";
import { runNode } from "./run-node.ts";

export type Program = {
  readonly folder: string;
  readonly entries: readonly string[];
  readonly also?: Readonly<Record<string, string>>;
};

/** The folder of each of Herald's programs, its entry points (`src/<entry>.ts` there), and further programs of its image. */
export const programs = {
  gateway: { folder: "services/gateway", entries: ["main"] },
  registry: { folder: "services/registry", entries: ["main"] },
  dispatch: { folder: "services/dispatch", entries: ["main"] },
  analytics: { folder: "services/analytics", entries: ["main", "rebuild/main"] },
  bus: { folder: "packages/bus", entries: ["main", "consumers/main"] },
  simulators: { folder: "packages/simulators", entries: ["main"], also: { demo: "tools/local-stack/src/demo.ts" } },
} as const satisfies Readonly<Record<string, Program>>;

export type ProgramName = keyof typeof programs;

export const programNames = Object.keys(programs) as ProgramName[];

/** The file that Node runs, below the root of a tree whose programs are bundled. */
export const bundleOf = (name: ProgramName): string => `${programs[name].folder}/dist/main.js`;

/** Files that determine a bundle's content besides its sources. */
const recipe = [
  "package-lock.json",
  ...["bundle.ts", "bundler.ts", "notices.ts"].map((file) => `tools/bundle/src/${file}`),
];

/** Runs the bundler in a process of its own. Returns its output. Throws its errors. */
export const runBundler = (root: string, name: ProgramName | "web"): Promise<string> => {
  const bundler = join(import.meta.dirname, "bundler.ts");
  return runNode(`bundling ${name}`, ["--conditions=@herald/source", bundler, root, name]);
};

/**
 * Bundles changed programs of the tree at `root`, one after the other. The memory of an idle process is mostly its loaded modules and the
 * cost of loading them, and from a bundle it loads only the code that it uses. Throws the bundler's errors.
 */
export const bundle = async (root: string, names: readonly ProgramName[]): Promise<void> => {
  for (const name of names)
    if (!(await isCurrent(root, join(root, programs[name].folder, "dist"), recipe))) await runBundler(root, name);
};
