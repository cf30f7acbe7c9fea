import type { Bucket } from "@herald/bus";
import { type ProjectId, type ProvidersRecord, projectProvidersKey } from "@herald/contracts";
import type { CredentialStore } from "../stores/credential-store.ts";

/** What the gateway must know with the database away: which providers a project has. */
export type ProviderRecords = {
  /** Writes what the database says, until it says the same after the write: of two changes at once neither is lost. */
  update(projectId: ProjectId): Promise<void>;
  remove(projectId: ProjectId): Promise<void>;
};

export const createProviderRecords = (
  bucket: Bucket<ProvidersRecord>,
  credentials: Pick<CredentialStore, "providersOf">,
): ProviderRecords => ({
  update: async (projectId) => {
    let written: string | undefined;
    for (;;) {
      const providers = await credentials.providersOf(projectId);
      if (written === providers.join()) return;
      await bucket.put(projectProvidersKey(projectId), { providers });
      written = providers.join();
    }
  },
  remove: (projectId) => bucket.delete(projectProvidersKey(projectId)),
});
