import { mkdtempSync, openSync, readSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

/**
 * Preloaded by services and simulators, it moves their clocks: they are ahead by the milliseconds in the file that HERALD_E2E_CLOCK names
 * (a double in this machine's byte order), which a test may change at any time. Timers and the broker's clock stay, so the sweep has to
 * find what becomes due.
 */
const file = process.env.HERALD_E2E_CLOCK;

if (file !== undefined) {
  const RealDate = Date;
  const opened = openSync(file, "r");
  const ahead = new Float64Array(1);
  // Each time: a service that remembers it for some milliseconds would answer the next request at the time before it.
  const now = () => {
    readSync(opened, ahead, 0, ahead.byteLength, 0);
    return RealDate.now() + (ahead[0] ?? 0);
  };
  globalThis.Date = new Proxy(RealDate, {
    construct: (target, args, newTarget) =>
      Reflect.construct(target, args.length === 0 ? [now()] : args, newTarget) as object,
    apply: () => new RealDate(now()).toString(),
    get: (target, name, receiver) => (name === "now" ? now : Reflect.get(target, name, receiver)),
  });
}

/** A clock that the services of a system share: `env` is for its start. */
export const movableClock = () => {
  const path = join(mkdtempSync(join(tmpdir(), "herald-clock-")), "ahead");
  const opened = openSync(path, "w");
  let ahead = 0;
  /** Eight bytes in place, so that no process reads half of it. */
  const set = (ms: number) => {
    ahead = ms;
    writeSync(opened, Float64Array.of(ms), 0, Float64Array.BYTES_PER_ELEMENT, 0);
  };
  set(0);
  return {
    env: { NODE_OPTIONS: `--import=${pathToFileURL(import.meta.filename).href}`, HERALD_E2E_CLOCK: path },
    now: () => new Date(Date.now() + ahead),
    /** The clock shows this time from now on, and goes on. */
    set: (at: Date) => set(at.getTime() - Date.now()),
  };
};

export type MovableClock = ReturnType<typeof movableClock>;
