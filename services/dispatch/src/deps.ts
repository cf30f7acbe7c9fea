import type { Bus, PublishedEvent } from "@herald/bus";
import type { NotificationId } from "@herald/contracts";
import type { Logger } from "@herald/kit";
import type { OpenTokens } from "@herald/payload";
import type { DispatchMetrics } from "./metrics.ts";
import type { Rules } from "./project-rules.ts";
import type { ConnectProvider } from "./providers/connect-provider.ts";
import type { ProviderPool } from "./providers/provider-pool.ts";
import type { createStores, DispatchOutbox } from "./stores/stores.ts";

/** Dependencies that the parts of dispatch share. Each part picks those that it uses. */
export type Deps = ReturnType<typeof createStores> & {
  readonly bus: Bus;
  readonly outbox: DispatchOutbox;
  readonly pool: ProviderPool;
  readonly connect: ConnectProvider;
  readonly rules: Rules;
  readonly openTokens: OpenTokens;
  /** Resolves when the events are on disk. Throws while the bus is unavailable. */
  readonly publish: (events: readonly PublishedEvent[]) => Promise<void>;
  /** Whether the notification came from a backup that was restored: it may have been sent after the backup was made. */
  readonly isRestored: (id: NotificationId) => boolean;
  readonly metrics: DispatchMetrics;
  readonly now: () => Date;
  /** In [0, 1): the jitter of retries. */
  readonly random: () => number;
  readonly log: Logger;
};
