import { type Bus, handleRequest, type RequestListener } from "@herald/bus";
import type { ProviderView } from "@herald/contracts";
import { DeleteProvider, GetProvider, type ProjectId, type Provider, PutProvider } from "@herald/contracts";
import { HeraldError } from "@herald/kit";
import type { Sweeps } from "../jobs/sweeps.ts";
import type { CheckedProvider } from "../providers/check-settings.ts";
import type { ProviderPool } from "../providers/provider-pool.ts";
import { freshProblems } from "../providers/provider-problems.ts";
import type { KeyRing } from "../providers/webpush/key-ring.ts";
import { type CompleteWebPushSettings, ringOf } from "../providers/webpush/settings.ts";
import type { CredentialDocument, CredentialStore } from "../stores/credential-store.ts";
import type { DeliveryStore } from "../stores/delivery-store.ts";
import type { ProviderRecords } from "./provider-records.ts";

type Deps = {
  readonly bus: Bus;
  readonly credentials: CredentialStore;
  readonly deliveries: Pick<DeliveryStore, "resume">;
  readonly records: ProviderRecords;
  readonly check: (provider: Provider, settings: unknown, previousKeys: KeyRing | undefined) => CheckedProvider;
  readonly pool: Pick<ProviderPool, "forget">;
  readonly sweeps: Pick<Sweeps, "sweepDue">;
  readonly flushCredential: (projectId: string, provider: Provider) => Promise<void>;
  readonly now: () => Date;
};

export const handleProviderRequests = (deps: Deps): RequestListener[] => {
  const { bus, credentials, deliveries, records, check, pool, sweeps, flushCredential, now } = deps;

  /** What waited for settings goes on, with the new ones or without any. */
  const changed = async (projectId: ProjectId, provider: Provider) => {
    await records.update(projectId);
    pool.forget(projectId, provider);
    await deliveries.resume(projectId, provider, now());
    void sweeps.sweepDue();
    await flushCredential(projectId, provider);
  };

  /** Only where something of them may stay: elsewhere new settings must mend those that cannot be opened any more. */
  const previousKeys = async (document: CredentialDocument | null): Promise<KeyRing | undefined> =>
    document?.provider === "webpush"
      ? ringOf((await credentials.open(document)) as CompleteWebPushSettings, document.updatedAt)
      : undefined;

  const replace = async (projectId: ProjectId, provider: Provider, settings: unknown): Promise<CredentialDocument> => {
    for (;;) {
      const before = await credentials.find(projectId, provider);
      const checked = check(provider, settings, await previousKeys(before));
      if ("problems" in checked) throw new HeraldError("validation-failed", checked.problems);
      // Keys that came in between would be lost.
      const document = await credentials.put(projectId, provider, checked, now(), before);
      if (document) return document;
    }
  };

  return [
    handleRequest(bus, PutProvider, async ({ projectId, provider, settings }) => {
      const document = await replace(projectId, provider, settings);
      await changed(projectId, provider);
      return providerView(document, now());
    }),

    handleRequest(bus, GetProvider, async ({ projectId, provider }) => {
      const document = await credentials.find(projectId, provider);
      if (!document) throw notFound(provider);
      return providerView(document, now());
    }),

    handleRequest(bus, DeleteProvider, async ({ projectId, provider }) => {
      const removed = await credentials.remove(projectId, provider);
      // Also when it is gone already: an earlier try may have ended between the database and the rest.
      await changed(projectId, provider);
      if (!removed) throw notFound(provider);
      return {};
    }),
  ];
};

const notFound = (provider: Provider) =>
  new HeraldError("provider-not-found", `the project has no settings for ${provider}`);

const providerView = (document: CredentialDocument, now: Date): ProviderView => {
  const { provider, view, paused, updatedAt } = document;
  const problems = freshProblems(document, now).map(({ reason, host, detail, since }) => ({
    reason,
    ...(host === undefined ? {} : { host }),
    detail,
    since: since.toISOString(),
  }));
  return {
    provider,
    settings: view,
    status: paused ? "paused" : "active",
    ...(paused ? { paused_reason: paused.providerReason === "" ? paused.reason : paused.providerReason } : {}),
    ...(problems.length > 0 ? { problems } : {}),
    updated_at: updatedAt.toISOString(),
  };
};
