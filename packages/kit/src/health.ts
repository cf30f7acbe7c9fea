import type { ServerResponse } from "node:http";

/** `true` is fine; `false`, a text that says why not, and a throw are not. */
type Check = () => boolean | string | Promise<boolean | string>;

type Failing = { readonly check: string; readonly since: string; readonly reason: string };
type Readiness = { readonly ready: boolean; readonly failing: readonly Failing[] };

export type Health = {
  /** What answers `/livez` and `/readyz`, by path. */
  readonly probes: ReadonlyMap<string, (response: ServerResponse) => Promise<void>>;
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
    return result === false ? "it is unavailable" : result;
  } catch {
    // What it threw may name hosts and users; the log has it from where it happened.
    return "the check failed";
  } finally {
    clearTimeout(timer);
  }
};

const answer = (response: ServerResponse, status: number, body: unknown): void => {
  response.statusCode = status;
  response.setHeader("cache-control", "no-store");
  response.setHeader("content-type", "application/json; charset=utf-8");
  response.end(JSON.stringify(body));
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
    probes: new Map([
      ["/livez", async (response) => answer(response, 200, { status: "alive" })],
      [
        "/readyz",
        async (response) => {
          const { ready, failing } = await look();
          if (ready) return answer(response, 200, { status: "ready" });
          response.setHeader("retry-after", "1");
          answer(response, 503, { status: "not ready", failing });
        },
      ],
    ]),
  };
};
