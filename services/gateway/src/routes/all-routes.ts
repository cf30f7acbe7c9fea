import type { Route } from "../http/route.ts";
import { auditRoutes } from "./audit-routes.ts";
import { batchRoutes } from "./batch-routes.ts";
import { deadLetterRoutes } from "./dead-letter-routes.ts";
import { deliveryTraceRoutes } from "./delivery-trace-routes.ts";
import { deviceRoutes } from "./device-routes.ts";
import { eventRoutes } from "./event-routes.ts";
import { exportRoutes } from "./export-routes.ts";
import { identificationRoutes } from "./identification-routes.ts";
import { identityKeyRoutes } from "./identity-key-routes.ts";
import { importRoutes } from "./import-routes.ts";
import { notificationRoutes } from "./notification-routes.ts";
import { openRoutes } from "./open-routes.ts";
import { operatorRoutes } from "./operator-routes.ts";
import { projectRoutes } from "./project-routes.ts";
import { providerRoutes } from "./provider-routes.ts";
import { putDevicesRoutes } from "./put-devices-routes.ts";
import { sessionRoutes } from "./session-routes.ts";
import { statsRoutes } from "./stats-routes.ts";
import { statusRoutes } from "./status-routes.ts";
import { subscriptionRoutes } from "./subscription-routes.ts";
import { tokenRoutes } from "./token-routes.ts";
import { topicRoutes } from "./topic-routes.ts";
import { userRoutes } from "./user-routes.ts";
import { vapidKeyRoutes } from "./vapid-key-routes.ts";
import { webhookMessageRoutes } from "./webhook-message-routes.ts";
import { webhookRoutes } from "./webhook-routes.ts";

/** All routes: the gateway serves them and the OpenAPI document describes them. */
export const allRoutes: readonly Route[] = [
  ...deviceRoutes,
  ...putDevicesRoutes,
  ...importRoutes,
  ...identificationRoutes,
  ...userRoutes,
  ...topicRoutes,
  ...subscriptionRoutes,
  ...notificationRoutes,
  ...batchRoutes,
  ...deliveryTraceRoutes,
  ...openRoutes,
  ...statsRoutes,
  ...eventRoutes,
  ...exportRoutes,
  ...webhookRoutes,
  ...webhookMessageRoutes,
  ...operatorRoutes,
  ...sessionRoutes,
  ...auditRoutes,
  ...projectRoutes,
  ...tokenRoutes,
  ...identityKeyRoutes,
  ...providerRoutes,
  ...vapidKeyRoutes,
  ...deadLetterRoutes,
  ...statusRoutes,
];
