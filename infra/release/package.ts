import { copyFile, cp, mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { bundleWebKit, thirdPartyNotices } from "@herald/bundle";
import { rolldown } from "rolldown";
import { must } from "./must.ts";

/** What `npm publish` takes, by the package's folder. */
export const packageNames = ["client", "web", "cli", "react-native", "simulators"] as const;
export type PackageName = (typeof packageNames)[number];

/** The files of a package below `dist`, and the libraries that were bundled into them. */
type Built = { readonly files: Readonly<Record<string, string>>; readonly notices: string };

/** Bundles one entry point into one file. Its dependencies are part of it, without the `external` ones. */
const bundleFile = async (
  input: string,
  file: string,
  platform: "neutral" | "node",
  external: readonly string[] = [],
): Promise<Built> => {
  const resolve = { conditionNames: ["@herald/source", "node"] };
  const build = await rolldown({
    input,
    platform,
    external: [...external],
    ...(platform === "node" && { resolve }),
    logLevel: "warn",
  });
  try {
    // Not minified: Node prints the line that threw, and names classes and functions. Who serves it to browsers minifies it.
    const { output } = await build.generate({ format: "esm", comments: false, codeSplitting: false });
    const [{ code, moduleIds }] = output;
    // The sources' interpreter line has flags that a package does not need.
    const runnable = code.replace(/^#!.*\n/, "#!/usr/bin/env node\n");
    return { files: { [file]: runnable }, notices: await thirdPartyNotices(moduleIds) };
  } finally {
    await build.close();
  }
};

const builds: Readonly<Record<PackageName, (root: string) => Promise<Built>>> = {
  client: (root) => bundleFile(join(root, "packages/client/src/index.ts"), "index.js", "neutral"),
  cli: (root) => bundleFile(join(root, "packages/cli/src/main.ts"), "herald.js", "node"),
  simulators: (root) => bundleFile(join(root, "packages/simulators/src/index.ts"), "index.js", "node"),
  web: async (root) => ({ files: await bundleWebKit(root), notices: "" }),
  "react-native": async (root) => {
    const folder = join(root, "packages/react-native");
    const { peerDependencies } = JSON.parse(await readFile(join(folder, "package.json"), "utf8"));
    const built = await bundleFile(join(folder, "src/index.ts"), "index.js", "neutral", Object.keys(peerDependencies));
    // Expo requires the plugin, which is not an ES module; this says that the other file is one.
    return { ...built, files: { ...built.files, "package.json": '{ "type": "module" }\n' } };
  },
};

/** What is published as it is, by its name in the package. */
const copies: Partial<Readonly<Record<PackageName, Readonly<Record<string, string>>>>> = {
  "react-native": {
    "app.plugin.js": "app.plugin.cjs",
    "expo-module.config.json": "expo-module.config.json",
    android: "android",
  },
};

/** The compiler's project of the types. The command line exports none. */
const typeProjects: Partial<Readonly<Record<PackageName, string>>> = {
  client: "test/tsconfig.types.json",
  web: "tsconfig.json",
  "react-native": "tsconfig.json",
  simulators: "tsconfig.types.json",
};

/** The declarations that a package needs, where the compiler writes those of all its sources. */
const declarations: Partial<Readonly<Record<PackageName, readonly string[]>>> = {
  simulators: ["index", "start-simulators", "types", "script/known-answers"],
};

/** Without what only this repository uses: scripts, development dependencies, the way to the sources. */
const publishedManifest = (name: PackageName, text: string, repository: string | undefined): object => {
  const {
    private: _,
    scripts: __,
    dependencies: ___,
    devDependencies: ____,
    ...rest
  } = JSON.parse(text.replaceAll("app.plugin.cjs", "app.plugin.js"));
  // Optional only so that this repository does not install them.
  const { peerDependenciesMeta: _____, exports, bin, ...own } = rest;
  return {
    ...own,
    ...(name === "react-native" && { type: "commonjs" }),
    ...(repository && {
      homepage: `${repository}#readme`,
      repository: { type: "git", url: `git+${repository}.git`, directory: `packages/${name}` },
    }),
    ...(bin ? { bin: { herald: "dist/herald.js" } } : { exports: withoutSources(exports) }),
  };
};

/** Undefined for what only this repository uses. */
const withoutSources = (exports: unknown): unknown => {
  if (typeof exports !== "object" || exports === null) return exports;
  const entries = Object.entries(exports)
    .filter(([condition]) => condition !== "@herald/source")
    .map(([name, target]) => [name, withoutSources(target)] as const)
    .filter(([, target]) => target !== undefined);
  return entries.length === 0 ? undefined : Object.fromEntries(entries);
};

/**
 * Without the last section, which is for the repository alone. Links that lead out of the package lead to the repository, or become plain text
 * if its address is unknown.
 */
const publishedReadme = (name: PackageName, text: string, base: string | undefined): string =>
  text
    .replace(/\n## In this repository\n.*/s, "")
    .replaceAll(/\[([^\]]+)\]\((\.\.?\/[^)]*)\)/g, (_, label: string, path: string) => {
      if (base === undefined) return label;
      const { pathname, hash } = new URL(path, `file:///packages/${name}/README.md`);
      return `[${label}](${base}${pathname}${hash})`;
    });

/**
 * Writes a package as it is published: its code in one file, or one for each place that loads it, its types, licence and README, and a
 * package.json without references to the sources. `repository` is its address on the web, without `.git`; `aar` the library that React Native
 * hands its calls to on Android. Throws the bundler's or the compiler's errors.
 */
export const buildPackage = async (
  root: string,
  name: PackageName,
  into: string,
  { repository, aar }: { readonly repository?: string | undefined; readonly aar?: string | undefined } = {},
) => {
  const folder = join(root, "packages", name);
  const dist = join(into, "dist");
  await mkdir(dist, { recursive: true });
  const { files, notices } = await builds[name](root);
  for (const [file, code] of Object.entries(files))
    await writeFile(join(dist, file), code, { mode: name === "cli" ? 0o755 : 0o644 });
  for (const [file, source] of Object.entries(copies[name] ?? {}))
    await cp(join(folder, source), join(into, file), { recursive: true });
  if (name === "react-native" && aar !== undefined) {
    await mkdir(join(into, "android/libs"));
    await copyFile(aar, join(into, "android/libs/herald-android.aar"));
  }
  if (notices !== "") await writeFile(join(into, "THIRD_PARTY_NOTICES"), `${notices}\n`);
  const project = typeProjects[name];
  if (project !== undefined) {
    const flags = ["--noEmit", "false", "--declaration", "--emitDeclarationOnly", "--outDir", dist];
    await must(join(root, "node_modules/.bin/tsc"), ["-p", join(folder, project), ...flags], { cwd: root });
    const needed = declarations[name]?.map((file) => `${file}.d.ts`);
    if (needed !== undefined)
      for (const entry of await readdir(dist, { recursive: true }))
        if (entry.endsWith(".d.ts") && !needed.includes(entry)) await rm(join(dist, entry));
  }
  const manifest = await readFile(join(folder, "package.json"), "utf8");
  const { version } = JSON.parse(manifest) as { version: string };
  const published = publishedManifest(name, manifest, repository);
  await writeFile(join(into, "package.json"), `${JSON.stringify(published, null, 2)}\n`);
  const readme = await readFile(join(folder, "README.md"), "utf8");
  await writeFile(
    join(into, "README.md"),
    publishedReadme(name, readme, repository && `${repository}/blob/v${version}`),
  );
  await copyFile(join(root, "LICENSE"), join(into, "LICENSE"));
};

/** Packs a built package into `out`, and returns the file's path. */
export const packPackage = async (folder: string, out: string): Promise<string> => {
  const packed = await must("npm", ["pack", "--json", "--ignore-scripts", "--pack-destination", out], { cwd: folder });
  const [{ filename }] = JSON.parse(packed) as [{ filename: string }];
  return join(out, filename);
};

/** `node infra/release/package.ts <package> <folder>`, for tests: the bundler's memory is freed with the process. */
if (import.meta.main) {
  const [name, into = ""] = process.argv.slice(2);
  const known = packageNames.find((one) => one === name);
  if (known === undefined || into === "") throw new Error(`name a package (${packageNames.join(", ")}) and a folder`);
  await buildPackage(join(import.meta.dirname, "../.."), known, resolve(into));
}
