import { createActivities } from "./activities.ts";
import type { Stats, StatsQuery } from "./api-types.ts";
import { createDevices } from "./devices.ts";
import { createEvents } from "./events.ts";
import { createExports } from "./exports.ts";
import { type CallOptions, createHttp, type HeraldOptions } from "./http.ts";
import { createImports } from "./imports.ts";
import { createNotifications } from "./notifications.ts";
import { createTemplates } from "./templates.ts";
import { createTopics } from "./topics.ts";
import { createUsers } from "./users.ts";
import { createWebhooks } from "./webhooks.ts";

/** The client of a project's backend: `new Herald({ url, token })`. */
export class Herald {
  readonly notifications: ReturnType<typeof createNotifications>;
  readonly activities: ReturnType<typeof createActivities>;
  readonly devices: ReturnType<typeof createDevices>;
  readonly imports: ReturnType<typeof createImports>;
  readonly templates: ReturnType<typeof createTemplates>;
  readonly topics: ReturnType<typeof createTopics>;
  readonly users: ReturnType<typeof createUsers>;
  readonly events: ReturnType<typeof createEvents>;
  readonly exports: ReturnType<typeof createExports>;
  readonly webhooks: ReturnType<typeof createWebhooks>;
  /** Sent, failed and opened counts over time. Default: the last 24 hours by hour. */
  readonly stats: (query?: StatsQuery, options?: CallOptions) => Promise<Stats>;

  /** `webhookSecret` is the default secret of `webhooks.verify`. Throws a TypeError if `url` or `token` is malformed. */
  constructor({ webhookSecret, ...options }: HeraldOptions & { readonly webhookSecret?: string | undefined }) {
    const http = createHttp(options, "/api/v1");
    this.notifications = createNotifications(http);
    this.activities = createActivities(http);
    this.devices = createDevices(http);
    this.imports = createImports(http);
    this.templates = createTemplates(http);
    this.topics = createTopics(http);
    this.users = createUsers(http);
    this.events = createEvents(http);
    this.exports = createExports(http);
    this.webhooks = createWebhooks(http, webhookSecret);
    this.stats = (query, options) => http.get("/stats", { ...options, query: { ...query } });
  }
}
