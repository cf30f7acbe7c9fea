import type { NotificationId, OutboxEvent, ProjectId, Provider } from "@herald/contracts";
import type { Logger } from "@herald/kit";
import { createOutbox } from "@herald/mongo";
import type { Db } from "mongodb";
import { credentialCollection } from "./credential-store.ts";
import { deliveryCollection } from "./delivery-document.ts";
import { notificationCollection, type OutboxCarrier } from "./notification-document.ts";

type Deps = {
  /** Resolves when the event is on disk. */
  readonly publish: (event: OutboxEvent) => Promise<void>;
  readonly log: Logger;
};

/** The events that documents of dispatch carry. Publishing never throws: the sweep publishes what is left. */
export const createDispatchOutbox = (db: Db, { publish, log }: Deps) => {
  const notifications = notificationCollection(db);
  const deliveries = deliveryCollection(db);
  const credentials = credentialCollection(db);
  const outbox = createOutbox<OutboxEvent>({
    collections: [{ collection: notifications }, { collection: deliveries }, { collection: credentials }],
    publish,
    log,
  });

  return {
    start: outbox.start,
    stop: outbox.stop,
    /** Publishes the events that a notification was just written with. */
    publishNotification: (written: OutboxCarrier) => outbox.publish(notifications, written),
    /** The same for one that has ended. */
    publishEnd: (written: OutboxCarrier) => outbox.publish(notifications, written, { final: true }),
    /** Publishes the events that a row of the ledger was just settled with. */
    publishRow: (row: {
      readonly _id: string;
      readonly projectId: ProjectId;
      readonly outbox: readonly OutboxEvent[];
    }) => outbox.publish(deliveries, row, { final: true }),
    /** Reads and publishes the events of a notification. */
    flushNotification: ({ _id, projectId }: { readonly _id: NotificationId; readonly projectId: ProjectId }) =>
      outbox.flush(notifications, { _id, projectId }),
    /** Reads and publishes the events of rows of the ledger. */
    flushRows: (projectId: ProjectId, ids: readonly string[]) =>
      outbox.flush(deliveries, { _id: { $in: ids }, projectId }),
    /** Reads and publishes the events of a project's provider. */
    flushCredential: (projectId: string, provider: Provider) =>
      outbox.flush(credentials, { _id: `${projectId}/${provider}` }),
  };
};

export type DispatchOutbox = ReturnType<typeof createDispatchOutbox>;
