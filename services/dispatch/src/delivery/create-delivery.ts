import { type Bus, groupedPublish } from "@herald/bus";
import { type OutboxEvent, SendV1 } from "@herald/contracts";
import type { FairGate, Logger } from "@herald/kit";
import type { OpenTokens } from "@herald/payload";
import { createExpandQueued } from "../jobs/expand-queued.ts";
import { createLiveMessages } from "../jobs/live-messages.ts";
import { createRecoverLostWork, createResolveOne } from "../jobs/recover-lost-work.ts";
import type { DispatchMetrics } from "../metrics.ts";
import type { ProviderPool } from "../providers/provider-pool.ts";
import type { BacklogStore } from "../stores/backlog-store.ts";
import type { CredentialStore } from "../stores/credential-store.ts";
import type { DeliveryStore } from "../stores/delivery-store.ts";
import type { DispatchOutbox } from "../stores/dispatch-outbox.ts";
import type { ExpansionQueue } from "../stores/expansion-queue.ts";
import type { LedgerReads } from "../stores/ledger-reads.ts";
import type { LostWork } from "../stores/lost-work.ts";
import type { NotificationStore } from "../stores/notification-store.ts";
import type { SmallSendStore } from "../stores/small-send-store.ts";
import { createBacklog } from "./backlog.ts";
import { createDeliverSends } from "./deliver-sends.ts";
import { createDueMessages } from "./due-messages.ts";
import { createExpand } from "./expand.ts";
import { createFinisher } from "./finish.ts";
import { createNotificationCache } from "./notification-cache.ts";
import { createPipeline } from "./pipeline.ts";
import { createCheckWaiting, createResolveSend } from "./prepare.ts";
import { createSmallSend } from "./small-send.ts";

/** For contents in memory: ten thousand of usual size, or more of the largest than are sent at a time. */
const cachedBytes = 32 * 1_048_576;

type Deps = {
  readonly bus: Bus;
  readonly notifications: NotificationStore;
  readonly deliveries: DeliveryStore;
  readonly sends: SmallSendStore;
  readonly ledger: LedgerReads;
  readonly credentials: CredentialStore;
  readonly queue: ExpansionQueue;
  readonly queued: BacklogStore;
  readonly lost: LostWork;
  readonly outbox: DispatchOutbox;
  readonly pool: ProviderPool;
  readonly openTokens: OpenTokens;
  /** Resolves when the event is on disk. */
  readonly publish: (event: OutboxEvent) => Promise<void>;
  /** How many sends to few devices are delivered at a time, and how many more wait in memory. */
  readonly gate: FairGate;
  /** How many of those that wait in a backlog are being stored at a time. */
  readonly backlogGate: FairGate;
  readonly metrics: DispatchMetrics;
  readonly now: () => Date;
  readonly random: () => number;
  readonly log: Logger;
};

/** The way of a notification from its send to its end, composed of the steps in this folder. */
export const createDelivery = (deps: Deps) => {
  const { bus, notifications, outbox, now } = deps;
  const cache = createNotificationCache(notifications, { maxBytes: cachedBytes, now });
  const finisher = createFinisher({ ...deps, publishOutbox: outbox.publishEnd });
  const dueMessages = createDueMessages(bus);
  const expand = createExpand(bus);
  const expandQueued = createExpandQueued({ ...deps, expand });
  const checkWaiting = createCheckWaiting(bus);
  const { flushCredential, flushRows } = outbox;
  const pipeline = createPipeline({
    ...deps,
    cache,
    finisher,
    dueMessages,
    publishOutbox: outbox.publishRow,
    flushCredential,
  });
  const publishSend = groupedPublish(() => bus, SendV1);
  const sendAsLarge = (send: SendV1) => publishSend(SendV1.schema.parse(send), send.notificationId);
  const smallSend = createSmallSend({
    ...deps,
    cache,
    finisher,
    pipeline,
    checkWaiting,
    publishOutbox: outbox.publishEnd,
    flushRows,
  });
  const { recover, release } = createRecoverLostWork({
    ...deps,
    live: createLiveMessages(bus),
    pipeline,
    expand,
    dueMessages,
    resolve: createResolveOne(bus),
  });
  const backlog = createBacklog({ ...deps, store: deps.queued, smallSend, checkWaiting, release });
  const resolve = createResolveSend(bus);
  const deliverSends = createDeliverSends({ ...deps, resolve, backlog, sendAsLarge, smallSend });

  return {
    cache,
    finisher,
    dueMessages,
    expandQueued,
    checkWaiting,
    pipeline,
    sendAsLarge,
    recover,
    backlog,
    deliverSends,
  };
};
