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
  simulators: { folder: "packages/simulators", entries: ["main"], also: { demo: "packages/local-stack/src/demo.ts" } },
} as const satisfies Readonly<Record<string, Program>>;

export type ProgramName = keyof typeof programs;

export const programNames = Object.keys(programs) as ProgramName[];

/** The file that Node runs, below the root of a tree whose programs are bundled. */
export const bundleOf = (name: ProgramName): string => `${programs[name].folder}/dist/main.js`;

/** Files that determine a bundle's content besides its sources. */
export const recipe = ["package-lock.json", "packages/local-stack/src/bundle/bundler.ts"];
