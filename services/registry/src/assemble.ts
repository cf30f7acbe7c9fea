import { groupedPublishEvent, openBucket } from "@herald/bus";
import { type OutboxEvent, ProjectRecord, TokenRecord } from "@herald/contracts";
import { repeat } from "@herald/kit";
import { createCounts, createErasureStore, createOutbox, startRetention } from "@herald/mongo";
import type { Ground, ServiceParts } from "@herald/service";
import type { RegistryConfig } from "./config.ts";
import { expand } from "./handlers/expand.ts";
import { retireDevice } from "./handlers/retire-device.ts";
import { createDeviceQuota } from "./identity/device-quota.ts";
import { rewrapSecrets } from "./identity/rewrap-secrets.ts";
import { createVerifyUserToken } from "./identity/verify-user-token.ts";
import { removeDeleted } from "./jobs/remove-deleted.ts";
import { createKnownProjects } from "./jobs/replicate-projects.ts";
import { retentionRules } from "./jobs/retention.ts";
import { createKeyedMutex } from "./keyed-mutex.ts";
import { answerAudience } from "./requests/audience.ts";
import { answerDevices } from "./requests/devices.ts";
import { answerIdentityKeys } from "./requests/identity-keys.ts";
import { answerProjects } from "./requests/projects.ts";
import { answerTokens } from "./requests/tokens.ts";
import { answerTopics } from "./requests/topics.ts";
import { answerUsers } from "./requests/users.ts";
import { createAudienceStore } from "./stores/audience-store.ts";
import { createDeviceStore, deviceCollection } from "./stores/device-store.ts";
import { createExpansionStore } from "./stores/expansion-store.ts";
import { createPendingEvents } from "./stores/pending-events.ts";
import { createProjectStore, projectCollection } from "./stores/project-store.ts";
import { createAnnounce } from "./stores/publish-queue.ts";
import { createTopicStore, topicCollection } from "./stores/topic-store.ts";

const defaults = {
  now: () => new Date(),
  /** Deletions that a crash interrupted wait so long at most. */
  removeEveryMs: 5_000,
  /** A deleted project is looked after for so long: no request that began before it lasts longer. */
  lingerMs: 60_000,
  /** An entry that a crash left behind the database is wrong for so long at most. */
  reconcileEveryMs: 60_000,
  retentionEveryMs: 3_600_000,
  /** How often is looked for events of new devices that a crash left behind. */
  pendingEveryMs: 2_000,
};

/** What a test chooses. */
export type Overrides = Partial<typeof defaults>;

/** Everything between the bus and the database, readable from the stores up to the handlers. */
export const assemble = (config: RegistryConfig, ground: Ground & Overrides): ServiceParts => {
  const { bus, db, log, now, removeEveryMs, lingerMs, reconcileEveryMs, retentionEveryMs, pendingEveryMs } = {
    ...defaults,
    ...ground,
  };

  const counts = createCounts();
  const projects = createProjectStore(db, counts, now);
  const topics = createTopicStore(db, counts);
  const publish = groupedPublishEvent(() => bus);
  const pending = createPendingEvents(db, deviceCollection(db), { publish, now, log });
  const devices = createDeviceStore(db, counts, pending);
  const audience = createAudienceStore(db);
  const expansions = createExpansionStore(db);
  const erasures = createErasureStore(db);
  const masterKeys = config.HERALD_REGISTRY_MASTER_KEYS;

  const collections = {
    projects: projectCollection(db),
    topics: topicCollection(db),
    devices: deviceCollection(db),
  };
  const outbox = createOutbox<OutboxEvent>({
    collections: [
      { collection: collections.projects },
      { collection: collections.topics, tombstone: "sweptAt" },
      { collection: collections.devices, tombstone: "deletedAt" },
    ],
    publish,
    log,
  });
  const announce = createAnnounce(outbox, collections);
  const knownProjects = createKnownProjects({
    projects,
    tokens: openBucket(bus, "push_tokens", TokenRecord),
    settings: openBucket(bus, "push_projects", ProjectRecord),
  });
  const parts = {
    projects,
    topics,
    devices,
    erasures,
    announce,
    knownProjects,
    keyedMutex: createKeyedMutex(),
    verifyUserToken: createVerifyUserToken(projects, masterKeys, now),
    deviceQuota: createDeviceQuota({
      most: config.HERALD_REGISTRY_QUOTA_DEVICES,
      countUpTo: devices.countUpTo,
      now,
    }),
    now,
  };

  return {
    prepare: async () => {
      for (const store of [projects, topics, devices, pending, expansions, erasures]) await store.ensureIndexes();
      const { moved, missing } = await rewrapSecrets(projects, masterKeys);
      if (moved > 0) log.info({ moved }, "identity secrets are under the first master key now");
      if (missing.length > 0) log.error({ missing }, "identity secrets are under master keys that are not configured");
      const unprotected = await projects.countUnprotected();
      if (unprotected > 0)
        log.warn(
          { projects: unprotected },
          "projects without protected_metadata: their clients may claim any user_id in metadata",
        );
    },
    handlers: [expand({ bus, audience, expansions, now }), retireDevice({ devices, announce, now })],
    begin: () => {
      const answering = [
        ...answerProjects(bus, parts),
        ...answerTokens(bus, parts),
        ...answerIdentityKeys(bus, { projects, masterKeys, now }),
        ...answerUsers(bus, { ...parts, publish }),
        ...answerDevices(bus, parts),
        ...answerTopics(bus, parts),
        ...answerAudience(bus, { audience, devices }),
      ];
      outbox.start();
      const working = [
        startRetention({ db, rules: retentionRules(devices), everyMs: retentionEveryMs, now, log }),
        repeat("remove what was deleted", removeEveryMs, log, (signal) => removeDeleted(parts, lingerMs, signal)),
        repeat("publish events of new devices", pendingEveryMs, log, pending.sweep),
        repeat("compare what gateways know", reconcileEveryMs, log, async (signal) => {
          const doubtful = await knownProjects.reconcile(signal);
          if (doubtful > 0) log.warn({ doubtful }, "entries of projects and tokens were behind the database");
        }),
      ];
      return async () => {
        await Promise.all(answering.map((each) => each.stop()));
        await Promise.all(working.map((each) => each.stop()));
        await Promise.all([announce.idle(), pending.idle()]);
        await outbox.stop();
      };
    },
  };
};
