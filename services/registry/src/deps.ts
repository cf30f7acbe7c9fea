import { groupedPublishEvents, openBucket, publishEvents } from "@herald/bus";
import {
  type DeviceId,
  OperatorRecord,
  type OutboxEvent,
  type ProjectId,
  ProjectRecord,
  ProvidersRecord,
  projectProvidersKey,
  RulesRecord,
  TemplateRecord,
  TokenRecord,
} from "@herald/contracts";
import { createCounts, createErasureStore, createOutbox } from "@herald/mongo";
import type { ServiceDeps } from "@herald/service";
import type { RegistryConfig } from "./config.ts";
import { createDeviceQuota } from "./identity/device-quota.ts";
import { createVerifyUserToken } from "./identity/verify-user-token.ts";
import { createOperatorReplication, createProjectReplication, createTemplateReplication } from "./jobs/replicate.ts";
import { createKeyedMutex } from "./requests/concurrency.ts";
import { createAudienceStore } from "./stores/audience-store.ts";
import { createAuditStore } from "./stores/audit-store.ts";
import { createDeviceStore, deviceCollection } from "./stores/device-store.ts";
import { createExpandedPageStore } from "./stores/expansion-store.ts";
import { createImportStore } from "./stores/import-store.ts";
import { createKindStore } from "./stores/kind-store.ts";
import { createOperatorStore } from "./stores/operator-store.ts";
import { createPauseStore } from "./stores/pause-store.ts";
import { createPendingEvents } from "./stores/pending-events.ts";
import { createProjectStore, projectCollection } from "./stores/project-store.ts";
import { createTemplateStore, templateCollection } from "./stores/template-store.ts";
import { createTopicStore, topicCollection } from "./stores/topic-store.ts";
import { createUserPreferenceStore } from "./stores/user-preference-store.ts";

/** The dependencies of registry's handlers, requests and jobs. app.ts creates them once. */
export type Deps = ReturnType<typeof createDeps>;

export const createDeps = (config: RegistryConfig, { bus, db, log, now }: ServiceDeps & { now: () => Date }) => {
  const masterKeys = config.HERALD_REGISTRY_MASTER_KEYS;
  const collections = {
    projects: projectCollection(db),
    topics: topicCollection(db),
    templates: templateCollection(db),
    devices: deviceCollection(db),
  };
  const publish = groupedPublishEvents(() => bus);
  const outbox = createOutbox<OutboxEvent>({
    collections: [
      { collection: collections.projects },
      { collection: collections.topics, tombstone: "sweptAt" },
      { collection: collections.templates },
      { collection: collections.devices, tombstone: "deletedAt" },
    ],
    publish: (event) => publish([event]),
    log,
  });
  const counts = createCounts();
  const projects = createProjectStore(db, counts, now);
  const operators = createOperatorStore(db, counts);
  const templates = createTemplateStore(db, counts);
  const publishMany = (events: readonly OutboxEvent[]) => publishEvents(bus, events);
  const pending = createPendingEvents(db, collections.devices, { publish, publishMany, now, log });
  const userPreferences = createUserPreferenceStore(db, collections.devices);
  const devices = createDeviceStore(db, counts, pending, userPreferences);
  const providers = openBucket(bus, "push_providers", ProvidersRecord);
  const published = openBucket(bus, "push_content", TemplateRecord);
  return {
    bus,
    projects,
    pauses: createPauseStore(db),
    kinds: createKindStore(db),
    userPreferences,
    operators,
    audit: createAuditStore(db, masterKeys),
    topics: createTopicStore(db, counts),
    templates,
    devices,
    audience: createAudienceStore(db),
    expansions: createExpandedPageStore(db),
    imports: createImportStore(db, counts),
    erasures: createErasureStore(db),
    pending,
    outbox,
    /** Publish the events of documents soon after they were written. */
    publishSoon: {
      devices: (projectId: ProjectId, ids: Iterable<DeviceId>) => outbox.flushSoon(collections.devices, projectId, ids),
      topics: (projectId: ProjectId, ids: Iterable<string>) => outbox.flushSoon(collections.topics, projectId, ids),
      templates: (projectId: ProjectId, ids: Iterable<string>) =>
        outbox.flushSoon(collections.templates, projectId, ids),
      project: (_id: ProjectId) => void outbox.flush(collections.projects, { _id }),
    },
    /** Resolves when the stream has stored the event. */
    publish,
    replication: createProjectReplication({
      projects,
      tokens: openBucket(bus, "push_tokens", TokenRecord),
      settings: openBucket(bus, "push_projects", ProjectRecord),
      rules: openBucket(bus, "push_projects", RulesRecord),
      now,
    }),
    operatorReplication: createOperatorReplication(operators, openBucket(bus, "push_operators", OperatorRecord)),
    /** How full the bucket of published templates is. */
    templateRoom: published.fill,
    templateReplication: createTemplateReplication(
      templates,
      published,
      openBucket(bus, "push_content", TemplateRecord.omit({ content: true })),
    ),
    keyedMutex: createKeyedMutex(),
    verifyUserToken: createVerifyUserToken(projects, masterKeys, now),
    deviceQuota: createDeviceQuota({
      max: config.HERALD_REGISTRY_QUOTA_DEVICES,
      ownLimit: async (projectId) => (await projects.find(projectId))?.limits?.devices,
      countUpTo: devices.countUpTo,
      now,
    }),
    /** What the project's Web Push settings say of subscriptions; undefined when it has no Web Push. */
    webPush: async (projectId: ProjectId): Promise<Pick<ProvidersRecord, "vapidKeys" | "pushOrigin"> | undefined> => {
      const record = (await providers.get(projectProvidersKey(projectId)))?.value;
      return record?.vapidKeys && record;
    },
    masterKeys,
    now,
  };
};
