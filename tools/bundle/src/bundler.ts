import http from "node:http";
import { dirname, join, relative, resolve } from "node:path";
import { type Plugin, rolldown } from "rolldown";
import { removeOld, replaceFile, writeInputs } from "./built-files.ts";
import { type Program, type ProgramName, programs } from "./bundle.ts";
import { thirdPartyNotices } from "./notices.ts";
import type { WebKit } from "./web-kit.ts";

/**
 * `node bundler.ts <root> <program>`, or `<root> web`: bundles one program of a tree, or prints the browser kit as JSON. The bundler takes up
 * to 700 MB and keeps them, so no other process may import this file.
 */

/** Below `dist`. */
const chunks = "chunks";

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
    const modules = files.flatMap((one) => one.modules);
    await replaceFile(join(dist, "THIRD_PARTY_NOTICES"), await thirdPartyNotices(modules), begunAt);
    const sources = modules.filter((id) => id.startsWith("/"));
    await writeInputs(root, dist, sources, begunAt);
    await removeOld(join(dist, chunks), new Set(files.map(({ file }) => join(dist, file))));
  } finally {
    await build.close();
  }
};

/** The page's part is a module; the service worker is a classic script, so that another worker can import it. */
const webKitFiles = [
  { name: "herald.js", input: "index.ts", format: "esm" },
  { name: "herald-worker.js", input: "worker/main.ts", format: "iife" },
] as const;

const printWebKit = async (root: string): Promise<void> => {
  const kit: Partial<Record<keyof WebKit, string>> = {};
  for (const { name, input, format } of webKitFiles) {
    const build = await rolldown({ input: join(root, "packages/web/src", input), platform: "browser" });
    const { output } = await build.generate({ format, minify: true });
    kit[name] = output[0].code;
    await build.close();
  }
  process.stdout.write(JSON.stringify(kit));
};

const [root = "", name = ""] = process.argv.slice(2);
try {
  await (name === "web" ? printWebKit(root) : bundleProgram(root, name as ProgramName));
} catch (error) {
  console.log(error instanceof Error ? error.message : String(error));
  process.exit(1);
}
