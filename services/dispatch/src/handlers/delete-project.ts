import { defineHandler } from "@herald/bus";
import { ProjectDeletedV1 } from "@herald/contracts";
import { retentionBatch } from "@herald/mongo";
import type { Deps } from "../deps.ts";
import type { ProviderRecords } from "../requests/providers.ts";

/** Small, so that a redelivery after a crash repeats little work. */
const atATime = 100;

/** Deletes a project's credentials at once, then its notifications and ledger in pieces. */
export const deleteProject = ({
  credentials,
  notifications,
  deliveries,
  erasures,
  caps,
  recipients,
  sendGroups,
  records,
  now,
}: Pick<
  Deps,
  "caps" | "credentials" | "deliveries" | "erasures" | "notifications" | "now" | "recipients" | "sendGroups"
> & { records: ProviderRecords }) =>
  defineHandler({
    durable: "dispatch-delete-project", // renaming a durable replays its stream
    message: ProjectDeletedV1,
    concurrency: 2, // long deletions that no caller waits for
    async handle({ data: { project_id: projectId } }) {
      await credentials.removeProject(projectId);
      await records.remove(projectId);
      await erasures.removeProject(projectId);
      await caps.removeProject(projectId, now());
      await sendGroups.removeProject(projectId);
      for (;;) {
        const some = await notifications.ofProject(projectId, atATime);
        if (some.length === 0) return;
        // The ledger first: its rows can only be found while their notification exists.
        while ((await deliveries.removeBatch(some)) === retentionBatch);
        while ((await recipients.removeBatch(some)) === retentionBatch);
        await notifications.removeAll(some);
      }
    },
  });
