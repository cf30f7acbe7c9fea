import type { StatusReport } from "@herald/contracts";
import type { CredentialStore } from "../stores/credential-store.ts";
import { freshProblems, problemShownMs } from "./provider-problems.ts";

/** Of paused and of unreachable providers each. */
const maxShown = 100;

/** The providers that need a person, of all projects. */
export const listTroubles =
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
      const reason = paused.providerReason === "" ? paused.reason : paused.providerReason;
      return [{ ...common, state: "paused" as const, reason, since: paused.at.toISOString() }, ...unreachable];
    });
    return { providers };
  };
