import { mkdtempSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

/**
 * Preloaded by services and simulators, it moves their clocks: they are ahead by the milliseconds in the file that HERALD_E2E_CLOCK names,
 * which a test may change at any time. Timers and the broker's clock stay, so the sweep has to find what becomes due.
 */
const file = process.env.HERALD_E2E_CLOCK;

/** Each millisecond would read the file too often. */
const readEveryMs = 20;

if (file !== undefined) {
  const RealDate = Date;
  let ahead = 0;
  let readAt = 0;
  const now = () => {
    const real = RealDate.now();
    if (Math.abs(real - readAt) >= readEveryMs) {
      ahead = Number(readFileSync(file, "utf8"));
      readAt = real;
    }
    return real + ahead;
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
  let ahead = 0;
  const set = (ms: number) => {
    ahead = ms;
    // At once: of a file that is being written, a service would read that it is ahead by nothing.
    writeFileSync(`${path}.new`, String(ms));
    renameSync(`${path}.new`, path);
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
