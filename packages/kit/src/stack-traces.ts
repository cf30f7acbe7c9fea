import { existsSync, readFileSync } from "node:fs";
import { SourceMap } from "node:module";
import { dirname } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

/** Errors come in rows; after that the maps are let go. */
const keepMs = 10_000;

const describe = (error: unknown): string => {
  try {
    return Error.prototype.toString.call(error);
  } catch {
    return "an error that cannot be described";
  }
};

/**
 * Stack traces of a bundled program name its sources, by the maps that lie beside its files; without maps nothing changes. Node's own
 * `--enable-source-maps` holds them from the start, 10 MB for what is needed when something has failed: this reads them then.
 */
export const mapStackTraces = (program: string): void => {
  if (!existsSync(`${program}.map`)) return;
  const folder = pathToFileURL(`${dirname(program)}/`).href;
  const maps = new Map<string, SourceMap>();
  const mapOf = (url: string): SourceMap => {
    const known = maps.get(url);
    if (known) return known;
    if (maps.size === 0) setTimeout(() => maps.clear(), keepMs).unref();
    const map = new SourceMap(JSON.parse(readFileSync(`${fileURLToPath(url)}.map`, "utf8")));
    maps.set(url, map);
    return map;
  };
  const mapped = (frame: NodeJS.CallSite): string => {
    const text = String(frame);
    const [url, line, column] = [frame.getFileName(), frame.getLineNumber(), frame.getColumnNumber()];
    if (!url?.startsWith(folder) || line === null || column === null) return text;
    try {
      const origin = mapOf(url).findOrigin(line, column);
      if (!("fileName" in origin)) return text;
      return text.replace(`${url}:${line}:${column}`, `${origin.fileName}:${origin.lineNumber}:${origin.columnNumber}`);
    } catch {
      // A map that cannot be read: the place in the bundle is better than none.
      return text;
    }
  };
  Error.prepareStackTrace = (error, frames) =>
    [describe(error), ...frames.map((frame) => `    at ${mapped(frame)}`)].join("\n");
};
