import type { ProjectId } from "@herald/contracts";
import { retentionBatch } from "@herald/mongo";
import type { ActivityChannels } from "../delivery/activity-channels.ts";
import type { Deps } from "../deps.ts";
import type { ProviderRecords } from "../requests/providers.ts";

/** Small, so that a repeat after a crash repeats little work. */
const atATime = 100;

/** Removes a project's credentials at once, then its notifications and ledger in pieces. Repeatable. */
export const createRemoveProject =
  ({
    credentials,
    notifications,
    deliveries,
    caps,
    recipients,
    sendGroups,
    records,
    channels,
    now,
  }: Pick<Deps, "caps" | "credentials" | "deliveries" | "notifications" | "now" | "recipients" | "sendGroups"> & {
    readonly records: ProviderRecords;
    readonly channels: Pick<ActivityChannels, "removeProject">;
  }) =>
  async (projectId: ProjectId, signal: AbortSignal): Promise<void> => {
    // Apple deletes them for the project's credentials alone.
    await channels.removeProject(projectId);
    await credentials.removeProject(projectId);
    await records.remove(projectId);
    await caps.removeProject(projectId, now());
    await sendGroups.removeProject(projectId);
    for (;;) {
      signal.throwIfAborted();
      const some = await notifications.ofProject(projectId, atATime);
      if (some.length === 0) return;
      // The ledger first: its rows can only be found while their notification exists.
      while ((await deliveries.removeBatch(some)) === retentionBatch);
      while ((await recipients.removeBatch(some)) === retentionBatch);
      await notifications.removeAll(some);
    }
  };
