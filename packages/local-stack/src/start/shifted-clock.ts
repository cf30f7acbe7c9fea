import { readFileSync } from "node:fs";

/**
 * The programs of a first start preload this module, with the path of a file in the query. The file contains the milliseconds by which
 * their `Date` is behind, until the file is deleted. Timers are not affected.
 */

const readEveryMs = 50;
const file = decodeURIComponent(new URL(import.meta.url).search.slice(1));
const RealDate = Date;

const read = (): number | undefined => {
  try {
    return Number(readFileSync(file, "utf8"));
  } catch {
    return undefined;
  }
};

let behindMs = read() ?? 0;
const now = () => RealDate.now() - behindMs;

globalThis.Date = new Proxy(RealDate, {
  construct: (target, given, newTarget) => Reflect.construct(target, given.length === 0 ? [now()] : given, newTarget),
  get: (target, name) => (name === "now" ? now : Reflect.get(target, name)),
});

const reading = setInterval(() => {
  const next = read();
  behindMs = next ?? 0;
  if (next !== undefined) return;
  clearInterval(reading);
  globalThis.Date = RealDate;
}, readEveryMs).unref();
