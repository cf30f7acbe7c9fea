import http from "node:http";
import { dirname, join, relative, resolve } from "node:path";
import { type Plugin, rolldown } from "rolldown";
import { isCurrent, removeOld, replaceFile, writeInputs } from "./built-files.ts";

type Program = {
  readonly folder: string;
  readonly entries: readonly string[];
  readonly also?: Readonly<Record<string, string>>;
};

/** The folder of each of Herald's programs, its entry points (`src/<entry>.ts` there), and further programs of its image. */
const programs = {
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

/** Below `dist`. */
const chunks = "chunks";

/** Files that determine a bundle's content besides its sources. */
const recipe = ["package-lock.json", "packages/local-stack/src/bundle/bundle.ts"];

/**
 * An import of `node:http` reads all its exports. Some are getters that load `fetch` and its dependencies: 13 MB that stay unused. So
 * this plugin replaces the module by one with only the plain exports.
 */
const plainHttp: Plugin = {
  name: "plain-http",
  resolveId: (id, _importer, { kind }) =>
    kind === "import-statement" && /^(?:node:)?http$/.test(id) ? "\0plain-http" : undefined,
  load: (id) => {
    if (id !== "\0plain-http") return undefined;
    const names = Object.entries(Object.getOwnPropertyDescriptors(http)).flatMap(([name, own]) =>
      "value" in own ? [name] : [],
    );
    return `const http = process.getBuiltinModule("node:http"); export default http; export const { ${names.join(", ")} } = http;`;
  },
};

/**
 * The ES modules of OpenTelemetry's gRPC exporter load their library with a `require` that they create themselves. No bundler sees it,
 * and the library is not beside the bundle. The exporter's CommonJS modules have a plain `require`.
 */
const plainGrpc: Plugin = {
  name: "plain-grpc",
  async resolveId(id, importer, { kind }) {
    if (id !== "@opentelemetry/otlp-grpc-exporter-base" || kind === "require-call") return undefined;
    return await this.resolve(id, importer, { kind: "require-call", skipSelf: true });
  },
};

/** The package name of a library's module, as used in chunk names. */
const libraryOf = (module: string): string | undefined =>
  /.*node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(module)?.[1]?.replace("/", "-");

const bundleProgram = async (root: string, name: ProgramName): Promise<void> => {
  const { folder, entries, also = {} }: Program = programs[name];
  const dist = join(root, folder, "dist");
  if (await isCurrent(root, dist, recipe)) return;
  const begunAt = new Date();
  const build = await rolldown({
    input: {
      ...Object.fromEntries(entries.map((entry) => [entry, join(root, folder, "src", `${entry}.ts`)])),
      ...Object.fromEntries(Object.entries(also).map(([entry, source]) => [entry, join(root, source)])),
    },
    cwd: root,
    platform: "node",
    // The bundler adds the condition `import` or `require` itself.
    resolve: { conditionNames: ["@herald/source", "node"] },
    plugins: [plainHttp, plainGrpc],
    // The database's driver imports optional packages that are not installed.
    checks: { unresolvedImport: false },
    logLevel: "warn",
  });
  try {
    const { output } = await build.generate({
      format: "esm",
      dir: dist,
      entryFileNames: "[name].js",
      chunkFileNames: `${chunks}/[name]-[hash].js`,
      // One file for each library: the memory that V8 needs to read a file grows with the file and is never freed. The group of modules
      // that are loaded at the start has priority, because a library's file also includes the modules that it imports.
      codeSplitting: {
        groups: [
          {
            debugName: "initial libraries",
            name: (module) => libraryOf(module) ?? null,
            tags: ["$initial"],
            priority: 1,
          },
          { debugName: "later libraries", name: (module) => libraryOf(module) ?? null },
        ],
      },
      // Names stay: stack traces and profiles show them, and code distinguishes error classes by name.
      minify: { compress: false, mangle: false, codegen: { removeWhitespace: true } },
      sourcemap: "hidden",
      sourcemapExcludeSources: true,
      // `packages/kit/src/logger.ts`: paths in stack traces are relative to the repository.
      sourcemapPathTransform: (source, map) => relative(root, resolve(dirname(map), source)),
    });
    const files = output.flatMap((one) =>
      one.type === "chunk"
        ? [{ file: one.fileName, content: one.code, entry: one.isEntry, modules: one.moduleIds }]
        : [{ file: one.fileName, content: String(one.source), entry: false, modules: [] }],
    );
    // Write the entry points last, so that the chunks that they import exist.
    for (const { file, content } of files.toSorted((one, other) => Number(one.entry) - Number(other.entry)))
      await replaceFile(join(dist, file), content, begunAt);
    const sources = files.flatMap(({ modules }) => modules.filter((id) => id.startsWith("/")));
    await writeInputs(root, dist, sources, begunAt);
    await removeOld(join(dist, chunks), new Set(files.map(({ file }) => join(dist, file))));
  } finally {
    await build.close();
  }
};

/**
 * Bundles changed programs of the tree at `root`. The memory of an idle process is mostly its loaded modules and the cost of loading them,
 * and from a bundle it loads only the code that it uses. Throws the bundler's errors.
 */
export const bundle = async (root: string, names: readonly ProgramName[]): Promise<void> => {
  await Promise.all(names.map((name) => bundleProgram(root, name)));
};
