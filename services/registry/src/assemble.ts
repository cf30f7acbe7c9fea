import { openBucket, publishEvent } from "@herald/bus";
import { type OutboxEvent, ProjectRecord, TokenRecord } from "@herald/contracts";
import { repeat } from "@herald/kit";
import { createCounts, createOutbox, startRetention } from "@herald/mongo";
import type { Ground, ServiceParts } from "@herald/service";
import { answerAudience } from "./answers/answer-audience.ts";
import { answerDevices } from "./answers/answer-devices.ts";
import { answerProjects } from "./answers/answer-projects.ts";
import { answerTokens } from "./answers/answer-tokens.ts";
import { answerTopics } from "./answers/answer-topics.ts";
import { expand } from "./handlers/expand.ts";
import { retireDevice } from "./handlers/retire-device.ts";
import { createInOrder } from "./in-order.ts";
import { retentionRules } from "./jobs/retention.ts";
import { createKnownProjects } from "./known-projects.ts";
import { removeDeleted } from "./removal/remove-deleted.ts";
import { createAnnounce } from "./stores/announce.ts";
import { createAudienceStore } from "./stores/audience-store.ts";
import { createDeviceStore, deviceCollection } from "./stores/device-store.ts";
import { createExpansionStore } from "./stores/expansion-store.ts";
import { createProjectStore, projectCollection } from "./stores/project-store.ts";
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
};

/** What a test chooses. */
export type Overrides = Partial<typeof defaults>;

/** Everything between the bus and the database, readable from the stores up to the handlers. */
export const assemble = (ground: Ground & Overrides): ServiceParts => {
  const { bus, db, log, now, removeEveryMs, lingerMs, reconcileEveryMs, retentionEveryMs } = { ...defaults, ...ground };

  const counts = createCounts();
  const projects = createProjectStore(db, counts, now);
  const topics = createTopicStore(db, counts);
  const devices = createDeviceStore(db, counts);
  const audience = createAudienceStore(db);
  const expansions = createExpansionStore(db);

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
    publish: (event) => publishEvent(bus, event),
    log,
  });
  const announce = createAnnounce(outbox, collections);
  const knownProjects = createKnownProjects({
    projects,
    tokens: openBucket(bus, "push_tokens", TokenRecord),
    settings: openBucket(bus, "push_projects", ProjectRecord),
  });
  const parts = { projects, topics, devices, announce, knownProjects, inOrder: createInOrder(), now };

  return {
    prepare: async () => {
      for (const store of [projects, topics, devices, expansions]) await store.ensureIndexes();
    },
    handlers: [expand({ bus, audience, expansions, now }), retireDevice({ devices, announce, now })],
    begin: () => {
      const answering = [
        ...answerProjects(bus, parts),
        ...answerTokens(bus, parts),
        ...answerDevices(bus, parts),
        ...answerTopics(bus, parts),
        ...answerAudience(bus, { audience, devices }),
      ];
      outbox.start();
      const working = [
        startRetention({ db, rules: retentionRules(devices), everyMs: retentionEveryMs, now, log }),
        repeat("remove what was deleted", removeEveryMs, log, (signal) => removeDeleted(parts, lingerMs, signal)),
        repeat("compare what gateways know", reconcileEveryMs, log, async (signal) => {
          const doubtful = await knownProjects.reconcile(signal);
          if (doubtful > 0) log.warn({ doubtful }, "entries of projects and tokens were behind the database");
        }),
      ];
      return async () => {
        await Promise.all(answering.map((each) => each.stop()));
        await Promise.all(working.map((each) => each.stop()));
        await announce.idle();
        await outbox.stop();
      };
    },
  };
};
