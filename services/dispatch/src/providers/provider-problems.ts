import { type ProviderProblemReason, providerProblems } from "@herald/contracts";
import type { Logger } from "@herald/kit";
import type { CredentialDocument, CredentialStore } from "../stores/credential-store.ts";

/** A problem of a route. */
export type Problem = {
  readonly reason: ProviderProblemReason;
  readonly host?: string | undefined;
  readonly detail: string;
};

/** Records why the pushes of one project's provider wait: in the provider's record and in the log. */
export type ProviderProblems = {
  /** Called for every push: costs one map lookup while nothing changes. */
  found(route: string, problem: Problem): void;
  over(route: string): void;
  close(): void;
};

/** Servers that come and go are written about once in so long. */
const writeEveryMs = 1_000;
/** A record that is older than a few of these is of a process that is gone. */
const repeatMs = 60_000;
/** A problem that has not occurred for so long is not shown: the process that reported it may have died before it was over. */
export const problemShownMs = 15 * 60_000;
/** One line a minute says which server it is; the record has them all. */
const logEveryMs = 60_000;

/** A stored problem is shown while it is fresh. */
export const freshProblems = ({ problems = [] }: Pick<CredentialDocument, "problems">, now: Date) =>
  problems.filter(({ at }) => now.getTime() - at.getTime() < problemShownMs);

type Deps = Pick<CredentialDocument, "projectId" | "provider" | "version"> & {
  readonly credentials: Pick<CredentialStore, "report">;
  /** What was stored when this process began with the settings. */
  readonly known: readonly string[];
  readonly now: () => Date;
  readonly log: Logger;
};

export const createProviderProblems = (deps: Deps): ProviderProblems => {
  const { projectId, provider, version, credentials, now, log } = deps;
  const current = new Map<string, Problem & { readonly at: number }>();
  const written = new Set(deps.known);
  const changed = new Set<string>();
  let timer: NodeJS.Timeout | undefined;
  let loggedAt = Number.NEGATIVE_INFINITY;
  let logged = false;
  let closed = false;

  const logProblem = ({ reason, host, detail }: Problem) => {
    const at = now().getTime();
    if (at - loggedAt < logEveryMs) return;
    loggedAt = at;
    logged = true;
    const what =
      reason === "credential-unproven" ? "the credential may be another app's" : "the provider cannot be reached";
    log.warn({ projectId, provider, host, reason, detail }, what);
  };

  const write = async () => {
    timer = undefined;
    for (const route of [...changed]) {
      changed.delete(route);
      const problem = current.get(route);
      if (!problem && !written.has(route)) continue;
      if (problem) logProblem(problem);
      if (problem) written.add(route);
      else written.delete(route);
      await credentials.report({ projectId, provider, version }, route, problem, now());
    }
    if (logged && current.size === 0) {
      logged = false;
      log.info({ projectId, provider }, "the provider is reached again");
    }
  };
  const plan = (route: string) => {
    if (closed) return;
    changed.add(route);
    timer ??= setTimeout(() => {
      write().catch((err: unknown) => log.warn({ err, provider }, "a provider's problem could not be stored"));
    }, writeEveryMs).unref();
  };

  return {
    found: (route, { reason, host, detail }) => {
      const at = now().getTime();
      const known = current.get(route);
      if (known?.reason === reason && known.host === host && at - known.at < repeatMs) return;
      current.set(route, { reason, host, detail, at });
      plan(route);
    },
    over: (route) => {
      if (!current.delete(route) && !written.has(route)) return;
      plan(route);
    },
    close: () => {
      closed = true;
      clearTimeout(timer);
    },
  };
};

/** The route of the problem that no device was accepted yet; it names no server. */
export const credentialRoute = "credential";

export const unproven = (providerReason: string): Problem => ({
  reason: "credential-unproven",
  detail: `${providerReason}: ${providerProblems["credential-unproven"]}`,
});
