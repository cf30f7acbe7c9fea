import { existsSync, readdirSync } from "node:fs";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";

export const usage = `npm run release -- [--registry <host/path>] [--push | --layouts <folder>] [--out <folder>] …

Builds all that a version consists of: packages for npm, the library for Android, images, the archive for compose, the chart, OpenAPI and AsyncAPI.

  --registry <host/path>   where the images are pulled from, such as ghcr.io/owner/herald; with --draft it may be left out
  --push                   pushes them there, and writes their digests into the archive and the chart
  --layouts <folder>       writes each image there as an OCI layout instead, to be pushed by who may: their digests stay; needs buildx
  --platforms <list>       such as linux/amd64,linux/arm64; needs --layouts
  --repository <url>       the address of this repository on the web: packages and archive link to it, and apps of React Native get the
                           package for iOS from there; only a draft may lack it
  --out <folder>           where the files are written; it replaces an earlier release there; default: dist/release
  --draft                  for trying it out: also with changes that are not committed, where the tag exists, and without Maven, which
                           builds the library for Android`;

/** Images of a draft without a registry: those that were built on this machine. */
const draftRegistry = "localhost/herald";

export type ReleaseOptions = {
  readonly registry: string;
  readonly push: boolean;
  /** An absolute path. */
  readonly layouts: string | undefined;
  readonly platforms: string | undefined;
  readonly repository: string | undefined;
  /** An absolute path. */
  readonly out: string;
  readonly draft: boolean;
  readonly help: boolean;
};

/** Why a container engine and Maven are not on this machine; undefined where one is. */
export type MissingTools = { readonly engine: string | undefined; readonly maven: string | undefined };

/** The file that marks a folder as one that a release may replace. */
export const sumsFile = "SHA256SUMS";

const isRegistry = /^[a-z0-9.-]+(?::\d+)?(?:\/[a-z0-9]+(?:[._-]+[a-z0-9]+)*)+$/;
const isAddress = /^https:\/\/[^\s/]+\/\S+$/;

/** Reads the command line. Throws a sentence about a flag that is unknown or lacks its value. */
export const readOptions = (words: readonly string[]): ReleaseOptions => {
  const { values } = parseArgs({
    args: [...words],
    options: {
      registry: { type: "string" },
      push: { type: "boolean", default: false },
      layouts: { type: "string" },
      platforms: { type: "string" },
      repository: { type: "string" },
      out: { type: "string", default: "dist/release" },
      draft: { type: "boolean", default: false },
      help: { type: "boolean", default: false },
    },
  });
  const { layouts, platforms, repository, ...others } = values;
  return {
    ...others,
    registry: values.registry ?? (values.draft ? draftRegistry : ""),
    layouts: layouts && resolve(layouts),
    platforms,
    repository: repository?.replace(/(?:\.git)?\/*$/, ""),
    out: resolve(values.out),
  };
};

/** What is wrong with the options, one sentence each. */
export const problemsOfOptions = (options: ReleaseOptions, missing: MissingTools): string[] => {
  const { registry, push, layouts, platforms, repository, out, draft } = options;
  const problems: string[] = [];
  if (!isRegistry.test(registry))
    problems.push(`--registry is a host and a path in lower case, such as ghcr.io/owner/herald, not "${registry}".`);
  if (repository === undefined ? !draft : !isAddress.test(repository))
    problems.push(`--repository is an address such as https://github.com/owner/herald, not "${repository ?? ""}".`);
  if (!draft && missing.maven !== undefined)
    problems.push(
      `The library for Android needs Maven and Java: install them, or try it out with --draft. \`mvn --version\` says: ${missing.maven}`,
    );
  if (push && layouts !== undefined)
    problems.push(
      "--push and --layouts exclude each other: either this command pushes the images, or another one does.",
    );
  if (platforms !== undefined && layouts === undefined)
    problems.push("--platforms needs --layouts: an engine keeps only images for its own processor.");
  if ((push || layouts !== undefined) && missing.engine !== undefined) {
    const asked = push ? "--push" : "--layouts";
    problems.push(
      `${asked} needs a container engine: start one, or leave ${asked} out. \`docker version\` says: ${missing.engine}`,
    );
  }
  if (existsSync(out) && readdirSync(out).length > 0 && !existsSync(join(out, sumsFile)))
    problems.push(`--out must be a new folder, an empty one or an earlier release; ${out} has other files.`);
  return problems;
};
