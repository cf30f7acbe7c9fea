import { readFileSync } from "node:fs";
import { SourceMap } from "node:module";
import { fileURLToPath } from "node:url";

/** What V8 reports of a script since the last report. The first function is the script itself. */
export type Coverage = {
  readonly url: string;
  readonly functions: readonly {
    readonly ranges: readonly { readonly startOffset: number; readonly count: number }[];
  }[];
};

const ours = /^(?:packages|services)\/[^/]+\/src\//;

/** The source files of functions that ran, relative to the repository, without those of libraries. */
export const executedFiles = (coverage: readonly Coverage[]): ReadonlySet<string> => {
  const files = new Set<string>();
  for (const { url, functions } of coverage) {
    const starts = functions.slice(1).flatMap(({ ranges: [whole] }) => (whole?.count ? [whole.startOffset] : []));
    if (starts.length === 0 || !url.includes("/dist/") || url.includes("/node_modules/")) continue;
    const bundle = fileURLToPath(url);
    const lines = readFileSync(bundle, "utf8").split("\n");
    const map = new SourceMap(JSON.parse(readFileSync(`${bundle}.map`, "utf8")));
    for (const start of starts) {
      let line = 0;
      let column = start;
      for (; column > (lines[line]?.length ?? Number.POSITIVE_INFINITY); line++)
        column -= (lines[line]?.length ?? 0) + 1;
      const entry = map.findEntry(line, column);
      if ("originalSource" in entry && ours.test(entry.originalSource)) files.add(entry.originalSource);
    }
  }
  return files;
};
