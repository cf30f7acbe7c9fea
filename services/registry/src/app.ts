import {
  type Answering,
  type Bus,
  busStatus,
  type Consuming,
  closeBus,
  connectBus,
  consume,
  consumersReady,
  openBucket,
  publishEvent,
  serviceAccess,
} from "@herald/bus";
import { type OutboxEvent, ProjectRecord, TokenRecord } from "@herald/contracts";
import {
  createHealth,
  createLifecycle,
  createLogger,
  type Logger,
  repeat,
  startHealthServer,
  startTelemetry,
} from "@herald/kit";
import { connectMongo, createCounts, createOutbox } from "@herald/mongo";
import { answerAudience } from "./answers/answer-audience.ts";
import { answerDevices } from "./answers/answer-devices.ts";
import { answerProjects } from "./answers/answer-projects.ts";
import { answerTokens } from "./answers/answer-tokens.ts";
import { answerTopics } from "./answers/answer-topics.ts";
import type { RegistryConfig } from "./config.ts";
import { expand } from "./handlers/expand.ts";
import { retireDevice } from "./handlers/retire-device.ts";
import { createInOrder } from "./in-order.ts";
import { createKnownProjects } from "./known-projects.ts";
import { removeDeleted } from "./removal/remove-deleted.ts";
import { createAnnounce } from "./stores/announce.ts";
import { createAudienceStore } from "./stores/audience-store.ts";
import { createDeviceStore, deviceCollection } from "./stores/device-store.ts";
import { createExpansionStore } from "./stores/expansion-store.ts";
import { createProjectStore, projectCollection } from "./stores/project-store.ts";
import { createTopicStore, topicCollection } from "./stores/topic-store.ts";

/** How long a stop may take in all; consumers get the greater part of it. */
const stopDeadlineMs = 30_000;
const drainMs = 20_000;

const defaults = {
  now: () => new Date(),
  /** Deletions that a crash interrupted wait so long at most. */
  removeEveryMs: 5_000,
  /** A deleted project is looked after for so long: no request that began before it lasts longer. */
  lingerMs: 60_000,
  /** An entry that a crash left behind the database is wrong for so long at most. */
  reconcileEveryMs: 60_000,
};

type Overrides = Partial<typeof defaults> & { readonly log?: Logger };

/** Registry, put together. `start` resolves when it takes messages; it waits for a broker and a database that are away. */
export const createApp = (config: RegistryConfig, overrides: Overrides = {}) => {
  const { now, removeEveryMs, lingerMs, reconcileEveryMs } = { ...defaults, ...overrides };
  const log = overrides.log ?? createLogger({ service: "registry", level: config.HERALD_LOG_LEVEL });
  const lifecycle = createLifecycle({ log, deadlineMs: stopDeadlineMs });
  let bus: Bus | undefined;
  let consuming: Consuming | undefined;
  let address = "";

  const start = async (): Promise<void> => {
    const telemetry = await startTelemetry({
      service: "registry",
      version: "0.1.0",
      metricsHost: config.HERALD_REGISTRY_HOST,
      metricsPort: config.HERALD_REGISTRY_METRICS_PORT,
      otlpEndpoint: config.OTEL_EXPORTER_OTLP_ENDPOINT,
    });
    const mongo = connectMongo({
      url: config.HERALD_MONGO_URL,
      database: config.HERALD_REGISTRY_DATABASE,
      appName: "herald-registry",
      log,
    });
    const { db } = mongo;
    const counts = createCounts();
    const projects = createProjectStore(db, counts, now);
    const topics = createTopicStore(db, counts);
    const devices = createDeviceStore(db, counts);
    const audience = createAudienceStore(db);
    const expansions = createExpansionStore(db);

    const health = createHealth({
      bus: () => (bus !== undefined && busStatus(bus).connected) || "NATS is away",
      consumers: () => (consuming !== undefined && consumersReady(consuming)) || "not every durable is there",
      database: async () => (await mongo.ping()) || "the database is away",
      indexes: () => mongo.prepared() || "the indexes are not made yet",
    });
    const http = await startHealthServer({
      health,
      log,
      host: config.HERALD_REGISTRY_HOST,
      port: config.HERALD_REGISTRY_PORT,
    });
    address = http.address;
    void mongo.prepare("indexes", async () => {
      for (const store of [projects, topics, devices, expansions]) await store.ensureIndexes();
    });

    const connected = await connectBus({ ...serviceAccess(config, "registry"), log });
    bus = connected;

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
      publish: (event) => publishEvent(connected, event),
      log,
    });
    const announce = createAnnounce(outbox, collections);
    const knownProjects = createKnownProjects({
      projects,
      tokens: openBucket(connected, "push_tokens", TokenRecord),
      settings: openBucket(connected, "push_projects", ProjectRecord),
    });
    const parts = { projects, topics, devices, announce, knownProjects, inOrder: createInOrder(), now };

    const answering: Answering[] = [
      ...answerProjects(connected, parts),
      ...answerTokens(connected, parts),
      ...answerDevices(connected, parts),
      ...answerTopics(connected, parts),
      ...answerAudience(connected, { audience, devices, now }),
    ];
    const consumers = await consume(connected, [
      expand({ bus: connected, audience, expansions, now }),
      retireDevice({ devices, announce, now }),
    ]);
    consuming = consumers;
    outbox.start();
    const removing = repeat("remove what was deleted", removeEveryMs, log, (signal) =>
      removeDeleted(parts, lingerMs, signal),
    );
    const reconciling = repeat("compare what gateways know", reconcileEveryMs, log, async (signal) => {
      const doubtful = await knownProjects.reconcile(signal);
      if (doubtful > 0) log.warn({ doubtful }, "entries of projects and tokens were behind the database");
    });

    lifecycle.onStop("readiness", health.shuttingDown);
    lifecycle.onStop("consumers", () => consumers.stop(drainMs));
    lifecycle.onStop("answers", async () => {
      await Promise.all(answering.map((each) => each.stop()));
    });
    lifecycle.onStop("background", async () => {
      await Promise.all([removing.stop(), reconciling.stop()]);
    });
    lifecycle.onStop("outbox", async () => {
      await announce.idle();
      await outbox.stop();
    });
    lifecycle.onStop("http", () => http.stop(1_000));
    lifecycle.onStop("bus", () => closeBus(connected));
    lifecycle.onStop("database", mongo.close);
    lifecycle.onStop("telemetry", telemetry.stop);
  };

  return {
    start,
    stop: (): Promise<boolean> => lifecycle.stop("asked to"),
    /** Where its probes listen, as a base URL; empty before it was started. */
    address: (): string => address,
  };
};
