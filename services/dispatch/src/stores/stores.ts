import type { NotificationId, OutboxEvent, ProjectId, Provider } from "@herald/contracts";
import type { Logger, MasterKeys } from "@herald/kit";
import { createErasureStore, createOutbox } from "@herald/mongo";
import type { Db } from "mongodb";
import { createCapStore } from "./cap-store.ts";
import { createCredentialStore, credentialCollection } from "./credential-store.ts";
import { deliveryCollection } from "./delivery-document.ts";
import { createDeliveryExport, createDeliveryList } from "./delivery-list.ts";
import { createDeliveryStore } from "./delivery-store.ts";
import { createDeliveryTrace, createDeliveryUsers } from "./delivery-trace.ts";
import { createDeviceTimeline } from "./device-timeline.ts";
import { createEscalationStore } from "./escalation-store.ts";
import { createExpansionStore } from "./expansion-store.ts";
import { createLedger } from "./ledger.ts";
import { notificationCollection, type OutboxCarrier } from "./notification-document.ts";
import { createNotificationStore } from "./notification-store.ts";
import { createRecipientStore } from "./recipient-store.ts";
import { createSendGroupStore } from "./send-group-store.ts";
import { createSmallSendStore } from "./small-send-store.ts";

/** Everything that dispatch reads and writes in its database. */
export const createStores = (db: Db, masterKeys: MasterKeys) => ({
  notifications: createNotificationStore(db),
  deliveries: createDeliveryStore(db),
  sends: createSmallSendStore(db),
  ledger: createLedger(db),
  credentials: createCredentialStore(db, masterKeys),
  erasures: createErasureStore(db),
  escalations: createEscalationStore(db),
  expansions: createExpansionStore(db),
  sendGroups: createSendGroupStore(db),
  recipients: createRecipientStore(db),
  caps: createCapStore(db),
  ...createDeliveryList(db),
  ...createDeliveryExport(db),
  ...createDeliveryTrace(db),
  ...createDeviceTimeline(db),
  ...createDeliveryUsers(db),
});

type Deps = {
  /** Resolves when the event is on disk. */
  readonly publish: (events: readonly OutboxEvent[]) => Promise<void>;
  readonly log: Logger;
};

/** The outbox events in dispatch's documents. Publishing never throws: the sweep publishes events that were left. */
export const createDispatchOutbox = (db: Db, { publish, log }: Deps) => {
  const notifications = notificationCollection(db);
  const deliveries = deliveryCollection(db);
  const credentials = credentialCollection(db);
  const outbox = createOutbox<OutboxEvent>({
    collections: [{ collection: notifications }, { collection: deliveries }, { collection: credentials }],
    publish: (event) => publish([event]),
    log,
  });

  return {
    start: outbox.start,
    stop: outbox.stop,
    /** Publishes the events that were just written with a notification. */
    publishNotification: (written: OutboxCarrier) => outbox.publish(notifications, written),
    /** Publishes the events that were just written with an ended notification. */
    publishEnd: (written: OutboxCarrier) => outbox.publish(notifications, written, { final: true }),
    /** Publishes the events that were just written with a settled ledger row. */
    publishRow: (row: {
      readonly _id: string;
      readonly projectId: ProjectId;
      readonly outbox: readonly OutboxEvent[];
    }) => outbox.publish(deliveries, row, { final: true }),
    /** Reads and publishes the events of a notification. */
    flushNotification: ({ _id, projectId }: { readonly _id: NotificationId; readonly projectId: ProjectId }) =>
      outbox.flush(notifications, { _id, projectId }),
    /** Reads and publishes the events of ledger rows. */
    flushRows: (projectId: ProjectId, ids: readonly string[]) =>
      outbox.flush(deliveries, { _id: { $in: ids }, projectId }),
    /** Reads and publishes the events of a project's provider. */
    flushCredential: (projectId: string, provider: Provider) =>
      outbox.flush(credentials, { _id: `${projectId}/${provider}` }),
  };
};

export type DispatchOutbox = ReturnType<typeof createDispatchOutbox>;
