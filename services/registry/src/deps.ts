import type { Bus } from "@herald/bus";
import type { OutboxEvent, ProjectId, ProvidersRecord } from "@herald/contracts";
import type { MasterKeys } from "@herald/kit";
import type { ErasureStore } from "@herald/mongo";
import type { DeviceQuota } from "./identity/device-quota.ts";
import type { VerifyUserToken } from "./identity/verify-user-token.ts";
import type { OperatorReplication } from "./jobs/replicate-operators.ts";
import type { ProjectReplication } from "./jobs/replicate-projects.ts";
import type { KeyedMutex } from "./requests/keyed-mutex.ts";
import type { AudienceStore } from "./stores/audience-store.ts";
import type { AuditStore } from "./stores/audit-store.ts";
import type { DeviceStore } from "./stores/device-store.ts";
import type { ExpansionStore } from "./stores/expansion-store.ts";
import type { ImportStore } from "./stores/import-store.ts";
import type { OperatorStore } from "./stores/operator-store.ts";
import type { ProjectStore } from "./stores/project-store.ts";
import type { PublishQueue } from "./stores/publish-queue.ts";
import type { TopicStore } from "./stores/topic-store.ts";

/** What the handlers, requests and jobs of registry use; app.ts makes one. */
export type Deps = {
  readonly bus: Bus;
  readonly projects: ProjectStore;
  readonly operators: OperatorStore;
  readonly audit: AuditStore;
  readonly topics: TopicStore;
  readonly devices: DeviceStore;
  readonly audience: AudienceStore;
  readonly expansions: ExpansionStore;
  readonly imports: ImportStore;
  readonly erasures: ErasureStore;
  readonly publishQueue: PublishQueue;
  /** Resolves when the stream has stored the event. */
  readonly publish: (event: OutboxEvent) => Promise<void>;
  readonly replication: ProjectReplication;
  readonly operatorReplication: OperatorReplication;
  readonly keyedMutex: KeyedMutex;
  readonly verifyUserToken: VerifyUserToken;
  readonly deviceQuota: DeviceQuota;
  /** The project's Web Push keys; undefined when it has no Web Push. */
  readonly vapidKeys: (projectId: ProjectId) => Promise<ProvidersRecord["vapidKeys"]>;
  readonly masterKeys: MasterKeys;
  readonly now: () => Date;
};
