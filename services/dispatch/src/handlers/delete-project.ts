import { defineHandler } from "@herald/bus";
import { ProjectDeletedV1 } from "@herald/contracts";
import type { ErasureStore } from "@herald/mongo";
import type { ProviderRecords } from "../requests/provider-records.ts";
import type { CredentialStore } from "../stores/credential-store.ts";
import type { DeliveryStore } from "../stores/delivery-store.ts";
import type { NotificationStore } from "../stores/notification-store.ts";

/** Few enough that a repeat after a crash does little twice. */
const atATime = 100;

/** A project is gone: so are its credentials at once, and its notifications and ledger piece by piece. */
export const deleteProject = ({
  credentials,
  notifications,
  deliveries,
  erasures,
  records,
}: {
  credentials: CredentialStore;
  notifications: NotificationStore;
  deliveries: DeliveryStore;
  erasures: ErasureStore;
  records: ProviderRecords;
}) =>
  defineHandler({
    durable: "dispatch-delete-project", // renaming a durable replays its stream
    message: ProjectDeletedV1,
    concurrency: 2, // long deletions that no caller waits for
    async handle({ data: { project_id: projectId } }) {
      await credentials.removeProject(projectId);
      await records.remove(projectId);
      await erasures.removeProject(projectId);
      for (;;) {
        const ids = await notifications.idsOf(projectId, atATime);
        if (ids.length === 0) return;
        // The ledger first: a notification that is gone finds no rows any more.
        for (const id of ids) await deliveries.remove(projectId, id);
        await notifications.remove(projectId, ids);
      }
    },
  });
