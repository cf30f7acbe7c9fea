import { adviceOn, providerProblems, type StatusReport } from "@herald/contracts";
import type { Logger } from "@herald/kit";
import type { CredentialDocument, CredentialStore, RouteProblem } from "../stores/credential-store.ts";

/** Changes are written at most this often, because some servers fail and recover repeatedly. */
const writeEveryMs = 1_000;
/** A problem that continues is written again after this time. A record several times older is from a process that has ended. */
const rewriteMs = 60_000;
/** A problem that did not occur for this long is not shown: the process that reported it may have died before the problem ended. */
export const problemShownMs = 15 * 60_000;
/** Problems are logged at most once a minute. The record has all of them. */
const logEveryMs = 60_000;

/** The stored problems that are recent enough to be shown. */
export const freshProblems = ({ problems = [] }: Pick<CredentialDocument, "problems">, now: Date) =>
  problems.filter(({ at }) => now.getTime() - at.getTime() < problemShownMs);

type Deps = Pick<CredentialDocument, "projectId" | "provider" | "version"> & {
  readonly credentials: Pick<CredentialStore, "report">;
  /** Routes whose problems were stored when this process opened the client. */
  readonly known: readonly string[];
  readonly now: () => Date;
  readonly log: Logger;
};

/** Records in the database and in the log why the pushes to one project's provider wait. */
export const createProviderProblems = (deps: Deps) => {
  const { projectId, provider, version, credentials, now, log } = deps;
  const current = new Map<string, RouteProblem & { readonly at: number }>();
  const written = new Set(deps.known);
  const changed = new Set<string>();
  let timer: NodeJS.Timeout | undefined;
  let loggedAt = Number.NEGATIVE_INFINITY;
  let logged = false;
  let closed = false;

  const logProblem = ({ reason, host, detail }: RouteProblem) => {
    const at = now().getTime();
    if (at - loggedAt < logEveryMs) return;
    loggedAt = at;
    logged = true;
    const what =
      reason === "credential-unproven"
        ? "the credential may be another app's"
        : reason === "not-the-provider"
          ? "something answers in the provider's place"
          : "the provider cannot be reached";
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
    /** Called for every push: costs one map lookup while nothing changes. */
    found: (route: string, { reason, host, detail }: RouteProblem) => {
      const at = now().getTime();
      const known = current.get(route);
      if (known?.reason === reason && known.host === host && at - known.at < rewriteMs) return;
      current.set(route, { reason, host, detail, at });
      plan(route);
    },
    over: (route: string) => {
      if (current.delete(route) || written.has(route)) plan(route);
    },
    /** The record belongs to settings that are replaced or a process that ends, but the log must name each problem. */
    close: () => {
      closed = true;
      clearTimeout(timer);
      for (const route of changed) {
        const problem = current.get(route);
        if (problem) logProblem(problem);
      }
    },
  };
};

/** The route of the problem `credential-unproven`. It names no server. */
export const credentialRoute = "credential";

export const unproven = (providerReason: string): RouteProblem => ({
  reason: "credential-unproven",
  detail: `${providerReason}: ${adviceOn(providerReason) ?? providerProblems["credential-unproven"]}`,
});

/** The maximum of paused and of unreachable providers each. */
const maxShown = 100;

/** Lists the providers of all projects that need attention. */
export const listProviderProblems =
  ({ credentials, now }: { credentials: Pick<CredentialStore, "troubled">; now: () => Date }) =>
  async (): Promise<Required<Pick<StatusReport, "providers">>> => {
    const at = now();
    const found = await credentials.troubled(new Date(at.getTime() - problemShownMs), maxShown);
    const providers = found.flatMap((document) => {
      const { projectId, provider, paused } = document;
      const common = { project_id: projectId, provider };
      const unreachable = freshProblems(document, at).map(({ reason, host, since }) => ({
        ...common,
        state: "unreachable" as const,
        reason,
        ...(host !== undefined && { host }),
        since: since.toISOString(),
      }));
      if (!paused) return unreachable;
      const reason = paused.providerReason || paused.reason;
      return [{ ...common, state: "paused" as const, reason, since: paused.at.toISOString() }, ...unreachable];
    });
    return { providers };
  };
