import { limitEventsPerProject } from "@herald/bus";
import type { ProjectId } from "@herald/contracts";
import { createErasureStore, retentionEveryMs, startRetention } from "@herald/mongo";
import {
  createService,
  deleteProject,
  type EraseRows,
  eraseUser,
  type Service,
  type ServiceDefinition,
  type ServiceDeps,
  startErasurePasses,
} from "@herald/service";
import type { AnalyticsConfig } from "./config.ts";
import { recordEvents } from "./handlers/record-events.ts";
import { recordOpens, recordReceipts } from "./handlers/record-reports.ts";
import { createAggregation } from "./jobs/aggregate-stats.ts";
import { handleReportRequests } from "./requests/reports.ts";
import { handleStatsRequest } from "./requests/stats.ts";
import { createStores, retentionRules } from "./stores/create-stores.ts";
import { createWebhookSending, type WebhookOverrides } from "./webhooks/create-webhooks.ts";
import { erasePayload } from "./webhooks/webhook-message.ts";

/** How long a stop waits for messages in progress: analytics stores the opens that it has received. */
const drainMs = 20_000;

const assemble = (config: AnalyticsConfig, deps: ServiceDeps & WebhookOverrides): ServiceDefinition => {
  const { bus, db, log, now = () => new Date() } = deps;

  const stores = createStores(db);
  const { opens, receipts, notificationFacts } = stores;
  const erasures = createErasureStore(db);
  const webhooks = createWebhookSending(config, deps);
  const aggregation = createAggregation(stores, log);
  const recording = { bus, storeDeltas: aggregation.store, notificationFacts };
  const rules = retentionRules(stores, config);
  const erase: EraseRows = async ({ projectId, key, at }) => {
    await notificationFacts.eraseUser(projectId, key, at);
    await webhooks.rewrite(projectId, at, (payload) => erasePayload(payload, projectId, key));
  };
  const removeProject = async (projectId: ProjectId, signal: AbortSignal): Promise<void> => {
    for (const { removePage } of [...Object.values(stores), ...webhooks.stores])
      while (await removePage(projectId)) signal.throwIfAborted();
  };
  const erasing = { erasures, erase, removeProject, now };

  return {
    prepare: async () => {
      for (const { ensureIndexes } of [...Object.values(stores), erasures]) await ensureIndexes();
      await webhooks.prepare();
    },
    handlers: [
      recordOpens(recording, opens),
      recordReceipts(recording, receipts),
      recordEvents(aggregation.store, notificationFacts, webhooks),
      deleteProject("analytics-delete-project", 1, erasing),
      eraseUser("analytics-erase-user", erasing),
    ],
    begin: () => [
      [...handleReportRequests(bus, stores), handleStatsRequest(bus, stores), ...webhooks.handleRequests()],
      [
        startErasurePasses(erasing, log),
        aggregation.begin(),
        limitEventsPerProject(bus),
        webhooks.startSending(),
        startRetention({ db, rules, everyMs: retentionEveryMs, now, log }),
      ],
    ],
  };
};

export const createApp = (config: AnalyticsConfig, overrides: WebhookOverrides = {}): Service =>
  createService({
    name: "analytics",
    config,
    drainMs,
    assemble: (deps) => assemble(config, { ...deps, ...overrides }),
  });
