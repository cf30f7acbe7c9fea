import { isDeepStrictEqual } from "node:util";
import type { Bucket } from "@herald/bus";
import { type ProjectId, type ProvidersRecord, projectProvidersKey } from "@herald/contracts";
import { publishedKeys } from "../providers/webpush/settings.ts";
import type { CredentialStore } from "../stores/credential-store.ts";

/** Projects that are compared together. */
const atATime = 200;

/** What the gateway must know while the database is unavailable: which providers a project has. */
export type ProviderRecords = {
  /** Writes what the database says, until it says the same after the write: of two changes at once neither is lost. */
  update(projectId: ProjectId): Promise<void>;
  /** Mends records that an older version wrote, or that a crash left behind. Resolves to how many there were. */
  reconcile(signal: AbortSignal): Promise<number>;
  remove(projectId: ProjectId): Promise<void>;
};

export const createProviderRecords = (
  bucket: Bucket<ProvidersRecord>,
  credentials: Pick<CredentialStore, "viewsOf" | "projectsAfter">,
): ProviderRecords => {
  const wanted = async (projectId: ProjectId): Promise<ProvidersRecord> => {
    const views = await credentials.viewsOf(projectId);
    const webPush = views.find(({ provider }) => provider === "webpush");
    return {
      providers: views.map(({ provider }) => provider),
      ...(webPush ? { vapidKeys: publishedKeys(webPush.view) } : {}),
    };
  };

  const update = async (projectId: ProjectId): Promise<void> => {
    let written: ProvidersRecord | undefined;
    for (;;) {
      const record = await wanted(projectId);
      if (isDeepStrictEqual(written, record)) return;
      await bucket.put(projectProvidersKey(projectId), record);
      written = record;
    }
  };

  return {
    update,
    reconcile: async (signal) => {
      let mended = 0;
      for (let some = await credentials.projectsAfter(undefined, atATime); some.length > 0; ) {
        for (const projectId of some) {
          signal.throwIfAborted();
          const stored = (await bucket.get(projectProvidersKey(projectId)))?.value;
          if (isDeepStrictEqual(stored, await wanted(projectId))) continue;
          await update(projectId);
          mended++;
        }
        some = await credentials.projectsAfter(some.at(-1), atATime);
      }
      return mended;
    },
    remove: (projectId) => bucket.delete(projectProvidersKey(projectId)),
  };
};
