import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";

type Manifest = { readonly name: string; readonly version: string; readonly license?: string };

/** The folder of the innermost library that a module is in. */
const libraryFolder = (module: string): string | undefined =>
  /^\0?(.*\/node_modules\/(?:@[^/]+\/)?[^/]+)\//.exec(module)?.[1];

/** One library: its name, version and licence, and the files in which it says so. */
const noticeOf = async (folder: string): Promise<string> => {
  const { name, version, license = "" } = JSON.parse(await readFile(join(folder, "package.json"), "utf8")) as Manifest;
  const files = (await readdir(folder)).filter((file) => /^(?:licen[cs]e|copying|notice)\b/i.test(file)).toSorted();
  if (license === "" && files.length === 0)
    throw new Error(`${name} ${version} states no licence, so it cannot be distributed: use another library`);
  const texts = await Promise.all(files.map((file) => readFile(join(folder, file), "utf8")));
  return [`${name} ${version}, ${license || "licence below"}`, ...texts.map((text) => text.trim())].join("\n\n");
};

/**
 * The licences of the libraries whose modules are part of a bundle, as they ask of everyone who distributes them. Empty without libraries.
 * Throws if a library states no licence.
 */
export const thirdPartyNotices = async (modules: readonly string[]): Promise<string> => {
  const folders = new Set(modules.flatMap((module) => libraryFolder(module) ?? []));
  const notices = await Promise.all([...folders].map(noticeOf));
  return [...new Set(notices)].toSorted().join(`\n\n${"-".repeat(80)}\n\n`);
};
