import { type MasterKeys, rewrap } from "@herald/kit";
import type { ProjectStore } from "../stores/project-store.ts";
import { secretOwner } from "./verify-user-token.ts";

/** Brings identity secrets under the first master key. `missing` names master keys that are needed and not configured. */
export const rewrapSecrets = async (
  projects: ProjectStore,
  masterKeys: MasterKeys,
): Promise<{ moved: number; missing: string[] }> => {
  const configured = new Set(masterKeys.map(({ id }) => id));
  const missing = new Set<string>();
  let moved = 0;
  for (const { _id, identityKeys = [] } of await projects.withIdentitySecrets())
    for (const key of identityKeys) {
      if (key.secret === undefined) continue;
      if (!configured.has(key.secret.keyId)) {
        missing.add(key.secret.keyId);
        continue;
      }
      const wrapped = rewrap(masterKeys, secretOwner(_id, key.id), key.secret);
      if (wrapped === undefined) continue;
      await projects.rewrapIdentityKey(_id, key, wrapped);
      moved++;
    }
  return { moved, missing: [...missing].sort() };
};
