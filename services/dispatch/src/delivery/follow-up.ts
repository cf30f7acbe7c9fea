import { servingProvider } from "@herald/contracts";
import type { ProviderPool } from "../providers/provider-pool.ts";
import type { CredentialStore } from "../stores/credential-store.ts";
import type { BatchFacts } from "../stores/delivery-document.ts";
import type { DeliveryStore } from "../stores/delivery-store.ts";
import type { DueMessages } from "./due-messages.ts";
import type { Finisher } from "./finish.ts";

export type FollowUpDeps = {
  readonly deliveries: Pick<DeliveryStore, "storeChild" | "resume">;
  readonly credentials: Pick<CredentialStore, "find">;
  readonly pool: Pick<ProviderPool, "refused" | "forget">;
  readonly finisher: Pick<Finisher, "check">;
  readonly dueMessages: Pick<DueMessages, "scheduleBatch">;
  readonly now: () => Date;
};

/**
 * What follows from a row that is settled: its child with the time of its next attempt, or the end of the notification. Repeatable.
 * `version`: that of the settings that the row was sent with, if the caller knows it.
 */
export type FollowUp = (batch: BatchFacts, sent?: { readonly version?: string | undefined }) => Promise<void>;

export const createFollowUp = ({
  deliveries,
  credentials,
  pool,
  finisher,
  dueMessages,
  now,
}: FollowUpDeps): FollowUp => {
  const plan = async (
    child: NonNullable<Awaited<ReturnType<DeliveryStore["storeChild"]>>>,
    version: string | undefined,
  ): Promise<void> => {
    const { projectId, dueAt, paused } = child;
    await dueMessages.scheduleBatch(child, dueAt);
    if (!paused && version === undefined) return;
    // New settings after the attempt resumed the rows that waited then, not this one.
    const provider = servingProvider(child);
    const credential = await credentials.find(projectId, provider);
    if (credential?.paused || (!paused && credential?.version === version)) return;
    // Refused here a moment ago: the pause is not in the database yet, and a retry would only be refused again.
    if (credential && pool.refused(credential)) return;
    pool.forget(projectId, provider);
    await deliveries.resume(projectId, provider, now());
  };

  return async (batch, { version } = {}) => {
    const child = await deliveries.storeChild(batch);
    if (child) await plan(child, version);
    else await finisher.check(batch.projectId, batch.notificationId);
  };
};
