import { shareEvents } from "@herald/bus";
import { createErasureStore, startRetention } from "@herald/mongo";
import { type EraseRows, eraseUser, type Ground, keepErasing, type ServiceParts } from "@herald/service";
import type { AnalyticsConfig } from "./config.ts";
import { deleteProject } from "./handlers/delete-project.ts";
import { recordEvents } from "./handlers/record-events.ts";
import { recordOpens } from "./handlers/record-opens.ts";
import { createFolding } from "./jobs/aggregate-stats.ts";
import { sweepOpens } from "./jobs/publish-left-opens.ts";
import { emitOpens } from "./jobs/publish-opens.ts";
import { retentionRules } from "./jobs/retention.ts";
import { answerOpens } from "./requests/opens.ts";
import { answerStats } from "./requests/stats.ts";
import { createNoticeStore } from "./stores/notification-facts-store.ts";
import { createOpenStore } from "./stores/open-store.ts";
import { createRollupStore } from "./stores/rollup-store.ts";
import { createContributionStore } from "./stores/stats-delta-store.ts";
import { createWebhooks, type WebhookOverrides } from "./webhooks/create-webhooks.ts";
import { erasePayload } from "./webhooks/erase-payload.ts";

/** A request to a slow webhook may take longer than this: it is made again by whoever comes next. */
const webhooksMs = 5_000;

/** Everything between the bus and the database, readable from the stores up to the handlers. */
export const assemble = (config: AnalyticsConfig, ground: Ground & WebhookOverrides): ServiceParts => {
  const { bus, db, log, now = () => new Date() } = ground;

  const opens = createOpenStore(db);
  const contributions = createContributionStore(db);
  const rollups = createRollupStore(db);
  const notices = createNoticeStore(db);
  const rules = retentionRules({ opens, contributions, rollups, notices }, config);
  const webhooks = createWebhooks(config, ground);
  const folding = createFolding(contributions, rollups, now, log);
  const emit = emitOpens(bus, opens);
  const erasures = createErasureStore(db);
  const erase: EraseRows = async ({ projectId, key, at }) => {
    await notices.eraseUser(projectId, key, at);
    await webhooks.rewrite(projectId, at, (payload) => erasePayload(payload, projectId, key));
  };
  const erasing = { erasures, erase, now };

  return {
    prepare: async () => {
      for (const { ensureIndexes } of [opens, contributions, rollups, notices, erasures]) await ensureIndexes();
      await webhooks.prepare();
    },
    handlers: [
      recordOpens(opens, folding.count, notices, emit),
      recordEvents(folding.count, notices, webhooks.makeMessages),
      deleteProject([
        opens,
        contributions,
        rollups,
        notices,
        ...webhooks.stores,
        { removePage: erasures.removeProject },
      ]),
      eraseUser("analytics-erase-user", erasing),
    ],
    begin: () => {
      const answering = [...answerOpens(bus, opens, rollups), answerStats(bus, rollups, notices)];
      const working = [
        keepErasing(erasing, log),
        sweepOpens(opens, emit, log, now),
        folding.begin(),
        shareEvents(bus),
        startRetention({ db, rules, everyMs: config.HERALD_RETENTION_INTERVAL, now, log }),
      ];
      const endWebhooks = webhooks.begin();
      return async () => {
        await Promise.all(answering.map((each) => each.stop()));
        await endWebhooks(webhooksMs);
        await Promise.all(working.map((each) => each.stop()));
      };
    },
  };
};
