import type { ServerResponse } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import type { HttpRoute } from "./http/serve-routes.ts";

/** `true` means healthy. `false`, a text with the reason, and a throw mean unhealthy. */
type Check = () => boolean | string | Promise<boolean | string>;

type Failing = { readonly check: string; readonly since: string; readonly reason: string };

/** Probes time out after about a second, so a check that hangs must fail earlier. */
const checkTimeoutMs = 900;

const outcome = async (check: Check): Promise<string | undefined> => {
  const late = sleep(checkTimeoutMs, "the check does not answer", { ref: false });
  try {
    const result = await Promise.race([Promise.resolve().then(check), late]);
    if (result === true) return undefined;
    return result === false ? "it is unavailable" : result;
  } catch {
    // The error may name hosts and users; the failing code logs it.
    return "the check failed";
  }
};

const answer = (response: ServerResponse, status: number, body: unknown): void => {
  response.statusCode = status;
  response.setHeader("cache-control", "no-store");
  response.setHeader("content-type", "application/json; charset=utf-8");
  response.end(`${JSON.stringify(body)}\n`);
};

const route = (pattern: string, serve: (response: ServerResponse) => Promise<void>): HttpRoute => ({
  method: "GET",
  pattern,
  serve: (_request, response) => serve(response),
});

export type Health = {
  /** The checks that fail now; the process is ready when none does. */
  failing(): Promise<Failing[]>;
  /** From now on `/readyz` is 503, so that load balancers send no new requests. */
  shuttingDown(): void;
  /** The routes of `/livez` and `/readyz`. */
  readonly routes: HttpRoute[];
};

/**
 * Probes. `/livez` is 200 while the process can answer: a restart would not bring a database back. `/readyz` is 200 when every check is
 * true, else 503 with the failing checks and the time when each was first seen to fail.
 */
export const createHealth = (checks: Readonly<Record<string, Check>>, now: () => Date = () => new Date()): Health => {
  const failingSince = new Map<string, Date>();
  let stoppingSince: Date | undefined;
  const look = async (): Promise<Failing[]> => {
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
    return failing;
  };
  return {
    failing: look,
    shuttingDown: () => {
      stoppingSince ??= now();
    },
    routes: [
      route("/livez", async (response) => answer(response, 200, { status: "alive" })),
      route("/readyz", async (response) => {
        const failing = await look();
        if (failing.length === 0) return answer(response, 200, { status: "ready" });
        response.setHeader("retry-after", "1");
        answer(response, 503, { status: "not ready", failing });
      }),
    ],
  };
};
