import { existsSync, readFileSync } from "node:fs";
import { dirname } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

type Map3 = { readonly sources: readonly string[]; readonly mappings: string };

/** Errors come from the same places repeatedly. At this many places the cache is cleared. */
const maxPlaces = 2_000;

const [segmentEnd, lineEnd] = [",", ";"].map((one) => one.charCodeAt(0));
const digits = new Uint8Array(128);
for (const [value, digit] of [..."ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"].entries())
  digits[digit.charCodeAt(0)] = value;

/**
 * The source of a place in a bundled file, as `file:line:column`. Lines and columns count from 0 in the map, and from 1 in stack traces.
 * Scans the mappings without storing them: Node's `SourceMap` makes 30 MB of objects from the database driver's map.
 */
const originOf = ({ sources, mappings }: Map3, line: number, column: number): string | undefined => {
  /** Generated column, source, source line, source column: each is a difference to the previous segment. */
  const state = [0, 0, 0, 0, 0];
  let [field, value, shift, atLine] = [0, 0, 0, 1];
  let found: string | undefined;
  const endSegment = (): boolean => {
    const [generated = 0, source = 0, sourceLine = 0, sourceColumn = 0] = state;
    const beyond = atLine > line || (atLine === line && generated >= column);
    if (field > 0 && atLine === line && !beyond)
      found = field < 4 ? undefined : `${sources[source]}:${sourceLine + 1}:${sourceColumn + 1}`;
    field = 0;
    return beyond;
  };
  for (let at = 0; at < mappings.length; at++) {
    const code = mappings.charCodeAt(at);
    if (code === segmentEnd || code === lineEnd) {
      if (endSegment()) return found;
      if (code === lineEnd) {
        atLine++;
        state[0] = 0;
      }
      continue;
    }
    const digit = digits[code] ?? 0;
    value += (digit & 31) << shift;
    shift += 5;
    if (digit & 32) continue;
    state[field] = (state[field] ?? 0) + (value & 1 ? -(value >>> 1) : value >>> 1);
    field++;
    value = 0;
    shift = 0;
  }
  endSegment();
  return found;
};

const describe = (error: unknown): string => {
  try {
    return Error.prototype.toString.call(error);
  } catch {
    return "an error that cannot be described";
  }
};

/**
 * Makes stack traces of a bundled program name its sources, with the maps beside its files; without maps nothing changes. Node's own
 * `--enable-source-maps` holds all maps from the start, 6 to 12 MB of a service's memory, and takes twice the time for a stack; this reads a
 * map only when an error needs it.
 */
export const mapStackTraces = (program: string): void => {
  if (!existsSync(`${program}.map`)) return;
  const folder = pathToFileURL(`${dirname(program)}/`).href;
  const places = new Map<string, string>();
  const read = (url: string): Map3 | undefined => {
    try {
      return JSON.parse(readFileSync(`${fileURLToPath(url)}.map`, "utf8"));
    } catch {
      // The map is missing or unreadable: the place in the bundle is better than none.
      return undefined;
    }
  };
  const mapped = (frame: NodeJS.CallSite, maps: Map<string, Map3 | undefined>): string => {
    const text = String(frame);
    const [url, line, column] = [frame.getFileName(), frame.getLineNumber(), frame.getColumnNumber()];
    if (!url?.startsWith(folder) || line === null || column === null) return text;
    const place = `${url}:${line}:${column}`;
    let origin = places.get(place);
    if (origin === undefined) {
      if (!maps.has(url)) maps.set(url, read(url));
      const map = maps.get(url);
      origin = (map && originOf(map, line, column)) ?? place;
      if (places.size >= maxPlaces) places.clear();
      places.set(place, origin);
    }
    return text.replace(place, origin);
  };
  Error.prepareStackTrace = (error, frames) => {
    /** Read once for all frames of a stack. */
    const maps = new Map<string, Map3 | undefined>();
    return [describe(error), ...frames.map((frame) => `    at ${mapped(frame, maps)}`)].join("\n");
  };
};
