import type { Route } from "../http/route.ts";
import { activityRoutes } from "./activity-routes.ts";
import { approvalRoutes } from "./approval-routes.ts";
import { auditRoutes } from "./audit-routes.ts";
import { deadLetterRoutes } from "./dead-letter-routes.ts";
import { deliveryTraceRoutes, deviceRoutes } from "./device-routes.ts";
import { followEvents, reportRoutes } from "./event-routes.ts";
import { exportRoutes } from "./export-routes.ts";
import { furtherTokenRoutes } from "./further-token-routes.ts";
import { identificationRoutes, identityKeyRoutes } from "./identification-routes.ts";
import { importRoutes } from "./import-routes.ts";
import { kindRoutes } from "./kind-routes.ts";
import { notificationRoutes, sendNotifications } from "./notification-routes.ts";
import { getStatus, operatorRoutes } from "./operator-routes.ts";
import { preferenceRoutes } from "./preference-routes.ts";
import { getStats, projectRoutes } from "./project-routes.ts";
import { providerRoutes, vapidKeyRoutes } from "./provider-routes.ts";
import { putDevicesRoute } from "./put-devices-routes.ts";
import { recipientRoutes } from "./recipient-routes.ts";
import { sessionRoutes } from "./session-routes.ts";
import { signInRoutes } from "./sign-in-routes.ts";
import { templateRoutes } from "./template-routes.ts";
import { tokenRoutes } from "./token-routes.ts";
import { subscriptionRoutes, topicRoutes } from "./topic-routes.ts";
import { userRoutes } from "./user-routes.ts";
import { webhookMessageRoutes, webhookRoutes } from "./webhook-routes.ts";

/** All routes: the gateway serves them and the OpenAPI document describes them. */
export const allRoutes: readonly Route[] = [
  ...notificationRoutes,
  sendNotifications,
  ...recipientRoutes,
  ...deviceRoutes,
  ...furtherTokenRoutes,
  putDevicesRoute,
  ...importRoutes,
  ...identificationRoutes,
  ...userRoutes,
  ...preferenceRoutes,
  ...topicRoutes,
  ...subscriptionRoutes,
  ...activityRoutes,
  ...deliveryTraceRoutes,
  ...templateRoutes,
  ...reportRoutes,
  getStats,
  followEvents,
  ...exportRoutes,
  ...webhookRoutes,
  ...webhookMessageRoutes,
  ...operatorRoutes,
  ...signInRoutes,
  ...sessionRoutes,
  ...auditRoutes,
  ...approvalRoutes,
  ...projectRoutes,
  ...kindRoutes,
  ...tokenRoutes,
  ...identityKeyRoutes,
  ...providerRoutes,
  ...vapidKeyRoutes,
  ...deadLetterRoutes,
  getStatus,
];

/** Those of the public port, where operators have a port of their own. */
export const publicRoutes = allRoutes.filter(({ path }) => path.startsWith("/api/"));
