import type { Router } from "express";

/** `true` is fine; `false`, a text that says why not, and a throw are not. */
type Check = () => boolean | string | Promise<boolean | string>;

type Failing = { readonly check: string; readonly since: string; readonly reason: string };
type Readiness = { readonly ready: boolean; readonly failing: readonly Failing[] };

export type Health = {
  /** Adds `/livez` and `/readyz`. */
  readonly routes: (router: Router) => void;
  readonly ready: () => Promise<Readiness>;
  /** From now on `/readyz` is 503, so that no new work is sent here. */
  readonly shuttingDown: () => void;
};

/** A probe gives up after a second or so: a check that hangs is one that fails. */
const checkTimeoutMs = 900;

const outcome = async (check: Check): Promise<string | undefined> => {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<string>((resolve) => {
    timer = setTimeout(resolve, checkTimeoutMs, "the check does not answer");
  });
  try {
    const result = await Promise.race([Promise.resolve().then(check), late]);
    if (result === true) return undefined;
    return result === false ? "it is away" : result;
  } catch {
    // What it threw may name hosts and users; the log has it from where it happened.
    return "the check failed";
  } finally {
    clearTimeout(timer);
  }
};

/**
 * Probes. `/livez` is 200 while the process can answer at all: restarting it does not bring a database back. `/readyz` is
 * 200 when every check is true, else 503 with the failing ones and since when each was seen to fail.
 */
export const createHealth = (checks: Readonly<Record<string, Check>>, now: () => Date = () => new Date()): Health => {
  const failingSince = new Map<string, Date>();
  let stoppingSince: Date | undefined;
  const look = async (): Promise<Readiness> => {
    const results = await Promise.all(
      Object.entries(checks).map(async ([name, check]) => [name, await outcome(check)] as const),
    );
    const failing: Failing[] = stoppingSince
      ? [{ check: "shutdown", since: stoppingSince.toISOString(), reason: "it is stopping" }]
      : [];
    for (const [name, reason] of results) {
      if (reason === undefined) {
        failingSince.delete(name);
        continue;
      }
      const since = failingSince.get(name) ?? now();
      failingSince.set(name, since);
      failing.push({ check: name, since: since.toISOString(), reason });
    }
    return { ready: failing.length === 0, failing };
  };
  return {
    ready: look,
    shuttingDown: () => {
      stoppingSince ??= now();
    },
    routes: (router) => {
      router.get("/livez", (_request, response) => {
        response.set("cache-control", "no-store").json({ status: "alive" });
      });
      router.get("/readyz", async (_request, response) => {
        const { ready, failing } = await look();
        response.set("cache-control", "no-store");
        if (!ready) response.status(503).set("retry-after", "1");
        response.json(ready ? { status: "ready" } : { status: "not ready", failing });
      });
    },
  };
};
