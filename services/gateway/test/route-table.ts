import type { Device, Notification } from "@herald/contracts";
import { apnsToken, type TestProject } from "./gateway-fixture.ts";

/** Everything that one project has, for the paths and bodies of the table. */
export type World = {
  project: TestProject;
  tokenId: string;
  device: Device;
  /** Whose the device is. */
  user: string;
  credential: string;
  importId: string;
  topic: { id: string; name: string };
  notification: Notification;
  openToken: string;
  deadLetter: string;
  webhook: string;
  webhookMessage: string;
  /** The id of the Web Push key that is staged. */
  nextKey: string;
  /** The id of an operator. */
  operator: string;
  /** The id of an identity secret. */
  identityKey: string;
};

export type Case = {
  /** Method and path; `{…}` from the world. */
  readonly route: (world: World) => string;
  readonly status: number;
  readonly body?: (world: World) => unknown;
  /** A body, or a query behind the path, that is refused with 422. */
  readonly bad?: unknown;
  readonly badQuery?: string;
  /** The request needs the session of an operator: a token is not enough. */
  readonly session?: true;
  /** What comes of it with another project's credential: 404 unless the route names nothing. */
  readonly foreign?: number;
};

export const newDevice = () => ({ device: { token: apnsToken(), platform: "ios" } });
const query = "?page=0";

/** Every route once, by its operation id: how it is called as it is meant, and how not. */
export const table: Record<string, Case> = {
  listDevices: { route: () => "GET /api/v1/devices", status: 200, badQuery: query, foreign: 200 },
  registerDevice: {
    route: () => "POST /api/v1/devices",
    status: 201,
    body: newDevice,
    bad: { device: { token: "no", platform: "ios" } },
    foreign: 201,
  },
  putDevices: {
    route: () => "PUT /api/v1/devices",
    status: 200,
    body: () => ({ devices: [newDevice().device] }),
    bad: { devices: [] },
    foreign: 200,
  },
  createImport: {
    route: () => "POST /api/v1/imports",
    status: 201,
    body: () => ({ import: { format: "herald" } }),
    bad: { import: { format: "excel" } },
    foreign: 201,
  },
  listImports: { route: () => "GET /api/v1/imports", status: 200, badQuery: query, foreign: 200 },
  getImport: { route: ({ importId }) => `GET /api/v1/imports/${importId}`, status: 200, badQuery: "?verbose=1" },
  listImportErrors: { route: ({ importId }) => `GET /api/v1/imports/${importId}/errors`, status: 200, badQuery: query },
  uploadImport: {
    route: ({ importId }) => `PUT /api/v1/imports/${importId}/content`,
    status: 415,
    badQuery: "?after_line=x",
  },
  getDevice: { route: ({ device: { id } }) => `GET /api/v1/devices/${id}`, status: 200, badQuery: "?verbose=1" },
  listDeviceNotifications: {
    route: ({ device: { id } }) => `GET /api/v1/devices/${id}/notifications`,
    status: 200,
    badQuery: query,
  },
  changeDevice: {
    route: ({ device: { id } }) => `PATCH /api/v1/devices/${id}`,
    status: 200,
    body: () => ({ device: { metadata: { plan: "pro" } } }),
    bad: { device: { metadata: { $ne: null } } },
  },
  deleteDevice: { route: ({ device: { id } }) => `DELETE /api/v1/devices/${id}`, status: 204, bad: { force: true } },
  identify: {
    route: () => "PUT /api/v1/identification",
    status: 201,
    body: ({ project }) => ({ project_id: project.id, identifier: apnsToken(), platform: "ios" }),
    bad: { project_id: "prj_1", identifier: { $ne: null } },
  },
  changeMetadata: {
    route: () => "PATCH /api/v1/metadata",
    status: 200,
    body: ({ device: { id } }) => ({ metadata: { plan: "pro" }, device_id: id }),
    bad: { metadata: [] },
  },
  putMetadata: {
    route: () => "PUT /api/v1/metadata",
    status: 200,
    body: ({ device: { id } }) => ({ metadata: { plan: null }, device_id: id }),
    bad: { metadata: "plan" },
  },
  listUsers: { route: () => "GET /api/v1/users", status: 200, badQuery: query, foreign: 200 },
  getUser: { route: ({ user }) => `GET /api/v1/users/${user}`, status: 200, badQuery: "?x=1" },
  listUserNotifications: {
    route: ({ user }) => `GET /api/v1/users/${user}/notifications`,
    status: 200,
    badQuery: "?page=0",
    foreign: 200,
  },
  identifyUserDevice: {
    route: ({ user, device: { id } }) => `PUT /api/v1/users/${user}/devices/${id}`,
    status: 200,
    bad: { user_id: "another" },
  },
  releaseUserDevice: {
    route: ({ user, device: { id } }) => `DELETE /api/v1/users/${user}/devices/${id}`,
    status: 204,
    bad: { force: true },
  },
  logOutDevice: { route: ({ device: { id } }) => `DELETE /api/v1/devices/${id}/user`, status: 204, bad: { all: true } },
  eraseUser: { route: ({ user }) => `DELETE /api/v1/users/${user}`, status: 202, bad: { force: true }, foreign: 202 },
  listTopics: { route: () => "GET /api/v1/topics", status: 200, badQuery: "?per_page=101", foreign: 200 },
  createTopic: {
    route: () => "POST /api/v1/topics",
    status: 201,
    body: () => ({ topic: { name: `topic-${apnsToken()}` } }),
    bad: { topic: { name: "all" } },
    foreign: 201,
  },
  getTopic: { route: ({ topic: { id } }) => `GET /api/v1/topics/${id}`, status: 200, badQuery: "?full" },
  changeTopic: {
    route: ({ topic: { id } }) => `PATCH /api/v1/topics/${id}`,
    status: 200,
    body: () => ({ topic: { closed: true } }),
    bad: { topic: { closed: "yes" } },
  },
  deleteTopic: { route: ({ topic: { name } }) => `DELETE /api/v1/topics/${name}`, status: 204, bad: { devices: [] } },
  subscribeDevices: {
    route: ({ topic: { id } }) => `PUT /api/v1/topics/${id}/devices`,
    status: 200,
    body: (world) => ({ devices: [world.device.id] }),
    bad: { devices: ["dev_1"] },
  },
  unsubscribeDevices: {
    route: ({ topic: { id } }) => `DELETE /api/v1/topics/${id}/devices`,
    status: 200,
    body: (world) => ({ devices: [world.device.id] }),
    bad: { devices: [] },
  },
  subscribeDevice: {
    route: (world) => `PUT /api/v1/devices/${world.device.id}/topics/${world.topic.id}`,
    status: 204,
    bad: { devices: [1] },
  },
  unsubscribeDevice: {
    route: (world) => `DELETE /api/v1/devices/${world.device.id}/topics/${world.topic.id}`,
    status: 204,
    bad: { devices: [1] },
  },
  sendNotification: {
    route: () => "POST /api/v1/notifications",
    status: 202,
    body: () => ({ notification: { title: "Hello", targets: ["all"] } }),
    bad: { notification: { title: "Hello", targets: [] } },
    foreign: 202,
  },
  sendNotifications: {
    route: () => "POST /api/v1/notifications/batch",
    status: 202,
    body: () => ({
      notifications: [
        { title: "Hello", targets: ["all"] },
        { body: "World", targets: ["token:a"] },
      ],
    }),
    bad: { notifications: [{ title: "Hello", targets: [] }] },
    foreign: 202,
  },
  listNotifications: {
    route: () => "GET /api/v1/notifications",
    status: 200,
    badQuery: "?page=1&after=",
    foreign: 200,
  },
  getNotification: {
    route: ({ notification }) => `GET /api/v1/notifications/${notification.id}`,
    status: 200,
    badQuery: "?x=1",
  },
  cancelNotification: {
    route: ({ notification }) => `DELETE /api/v1/notifications/${notification.id}`,
    status: 200,
    bad: [1],
  },
  listDeliveries: {
    route: ({ notification }) => `GET /api/v1/notifications/${notification.id}/deliveries`,
    status: 200,
    badQuery: "?status=sent",
  },
  getDeliveryTrace: {
    route: ({ notification, device }) => `GET /api/v1/notifications/${notification.id}/devices/${device.id}`,
    status: 200,
    badQuery: "?x=1",
  },
  getStats: {
    route: () => "GET /api/v1/stats",
    status: 200,
    badQuery: "?interval=week",
    foreign: 200,
  },
  openNotification: {
    route: ({ notification }) => `PUT /api/v1/notifications/${notification.id}/open`,
    status: 204,
    body: ({ project, openToken }) => ({ project_id: project.id, token: openToken }),
    bad: { project_id: { $ne: null }, token: { $gt: "" } },
  },
  followEvents: {
    route: () => "GET /api/v1/events?types=io.herald.notification.opened.v1",
    status: 200,
    badQuery: "&since=yesterday",
    foreign: 200,
  },
  exportDevices: {
    route: () => "GET /api/v1/exports/devices",
    status: 200,
    badQuery: "?format=xml",
    foreign: 200,
  },
  exportNotifications: {
    route: () => "GET /api/v1/exports/notifications",
    status: 200,
    badQuery: "?after=dev_1",
    foreign: 200,
  },
  exportDeliveries: {
    route: () => "GET /api/v1/exports/deliveries",
    status: 200,
    badQuery: "?status=lost",
    foreign: 200,
  },
  exportOpens: { route: () => "GET /api/v1/exports/opens", status: 200, badQuery: "?page=1", foreign: 200 },
  createWebhook: {
    route: () => "POST /api/v1/webhooks",
    status: 201,
    body: () => ({ webhook: { url: "https://example.com/herald", events: ["io.herald.notification.opened.v1"] } }),
    bad: { webhook: { url: "herald", events: ["notification.clicked"] } },
    foreign: 201,
  },
  listWebhooks: { route: () => "GET /api/v1/webhooks", status: 200, badQuery: "?per_page=0", foreign: 200 },
  getWebhook: { route: ({ webhook }) => `GET /api/v1/webhooks/${webhook}`, status: 200, badQuery: "?secret=1" },
  changeWebhook: {
    route: ({ webhook }) => `PATCH /api/v1/webhooks/${webhook}`,
    status: 200,
    body: () => ({ webhook: { enabled: false } }),
    bad: { webhook: {} },
  },
  deleteWebhook: { route: ({ webhook }) => `DELETE /api/v1/webhooks/${webhook}`, status: 204, bad: { force: true } },
  rotateWebhookSecret: {
    route: ({ webhook }) => `POST /api/v1/webhooks/${webhook}/secret`,
    status: 201,
    bad: { secret: "whsec_chosen" },
  },
  pingWebhook: { route: ({ webhook }) => `POST /api/v1/webhooks/${webhook}/ping`, status: 202, bad: { type: "x" } },
  recoverWebhook: {
    route: ({ webhook }) => `POST /api/v1/webhooks/${webhook}/recover`,
    status: 202,
    body: () => ({ since: "2030-01-31T09:00:00+02:00" }),
    bad: { since: "yesterday" },
  },
  listWebhookMessages: {
    route: ({ webhook }) => `GET /api/v1/webhooks/${webhook}/messages`,
    status: 200,
    badQuery: "?status=sent",
  },
  getWebhookMessage: {
    route: ({ webhook, webhookMessage }) => `GET /api/v1/webhooks/${webhook}/messages/${webhookMessage}`,
    status: 200,
    badQuery: "?payload=1",
  },
  resendWebhookMessage: {
    route: ({ webhook, webhookMessage }) => `POST /api/v1/webhooks/${webhook}/messages/${webhookMessage}/resend`,
    status: 202,
    bad: { now: true },
  },
  createOperator: {
    route: () => "POST /admin/v1/operators",
    status: 201,
    body: () => ({ operator: { name: "Maria", role: "viewer" } }),
    bad: { operator: { name: "Maria", role: "root" } },
  },
  listOperators: { route: () => "GET /admin/v1/operators", status: 200, badQuery: "?per_page=x" },
  getOperator: { route: ({ operator }) => `GET /admin/v1/operators/${operator}`, status: 200, badQuery: "?token" },
  changeOperator: {
    route: ({ operator }) => `PATCH /admin/v1/operators/${operator}`,
    status: 200,
    body: () => ({ operator: { role: "operator" } }),
    bad: { operator: {} },
  },
  rotateOperatorToken: {
    route: ({ operator }) => `POST /admin/v1/operators/${operator}/token`,
    status: 201,
    bad: { token: "hop_mine" },
  },
  deleteOperator: {
    route: ({ operator }) => `DELETE /admin/v1/operators/${operator}`,
    status: 204,
    bad: { force: true },
  },
  createSession: {
    route: () => "POST /admin/v1/sessions",
    status: 201,
    body: () => ({}),
    bad: { code: { $ne: null } },
  },
  getCurrentSession: { route: () => "GET /admin/v1/sessions/current", status: 200, badQuery: "?x=1" },
  deleteCurrentSession: {
    route: () => "DELETE /admin/v1/sessions/current",
    status: 204,
    session: true,
    bad: { all: true },
  },
  createSignInCode: { route: () => "POST /admin/v1/sessions/codes", status: 201, bad: { operator: "root" } },
  listAudit: { route: () => "GET /admin/v1/audit", status: 200, badQuery: "?page=1" },
  exportAudit: { route: () => "GET /admin/v1/audit/export", status: 200, badQuery: "?per_page=5" },
  verifyAudit: { route: () => "GET /admin/v1/audit/verify", status: 200, badQuery: "?after=x" },
  createProject: {
    route: () => "POST /admin/v1/projects",
    status: 201,
    body: () => ({ project: { name: "Another" } }),
    bad: { project: { name: "" } },
  },
  listProjects: { route: () => "GET /admin/v1/projects", status: 200, badQuery: "?per_page=x" },
  getProject: { route: ({ project }) => `GET /admin/v1/projects/${project.id}`, status: 200, badQuery: "?x=1" },
  changeProject: {
    route: ({ project }) => `PATCH /admin/v1/projects/${project.id}`,
    status: 200,
    body: () => ({ project: { name: "Renamed" } }),
    bad: { project: {} },
  },
  deleteProject: { route: ({ project }) => `DELETE /admin/v1/projects/${project.id}`, status: 204, bad: { all: true } },
  createToken: {
    route: ({ project }) => `POST /admin/v1/projects/${project.id}/tokens`,
    status: 201,
    body: () => ({ token: { name: "CI", scopes: ["send"], expires_at: "2999-01-01T00:00:00+02:00" } }),
    bad: { token: { name: "CI", scopes: ["write"] } },
  },
  listTokens: { route: ({ project }) => `GET /admin/v1/projects/${project.id}/tokens`, status: 200, badQuery: "?q" },
  revokeToken: {
    route: ({ project, tokenId }) => `DELETE /admin/v1/projects/${project.id}/tokens/${tokenId}`,
    status: 204,
    bad: { now: true },
  },
  createIdentityKey: {
    route: ({ project }) => `POST /admin/v1/projects/${project.id}/identity-keys`,
    status: 201,
    body: () => ({}),
    bad: { public_key: 1 },
  },
  listIdentityKeys: {
    route: ({ project }) => `GET /admin/v1/projects/${project.id}/identity-keys`,
    status: 200,
    badQuery: "?q",
  },
  deleteIdentityKey: {
    route: ({ project, identityKey }) => `DELETE /admin/v1/projects/${project.id}/identity-keys/${identityKey}`,
    status: 204,
    bad: { now: true },
  },
  putApnsProvider: {
    route: ({ project }) => `PUT /admin/v1/projects/${project.id}/providers/apns`,
    status: 200,
    body: () => ({
      key_id: "ABCDEFGHIJ",
      team_id: "ABCDEFGHIJ",
      private_key: "a key",
      bundle_id: "com.example.app",
      environment: "sandbox",
    }),
    bad: { key_id: "ABCDEFGHIJ" },
  },
  getApnsProvider: {
    route: ({ project }) => `GET /admin/v1/projects/${project.id}/providers/apns`,
    status: 200,
    badQuery: "?x=1",
  },
  deleteApnsProvider: {
    route: ({ project }) => `DELETE /admin/v1/projects/${project.id}/providers/apns`,
    status: 204,
    badQuery: "?x=1",
  },
  testApnsProvider: {
    route: ({ project }) => `POST /admin/v1/projects/${project.id}/providers/apns/test`,
    status: 200,
    body: () => ({ token: "a".repeat(64), environment: "sandbox" }),
    bad: { token: "a b" },
  },
  putFcmProvider: {
    route: ({ project }) => `PUT /admin/v1/projects/${project.id}/providers/fcm`,
    status: 200,
    body: () => ({ service_account: { type: "service_account" } }),
    bad: { service_account: "{}" },
  },
  getFcmProvider: {
    route: ({ project }) => `GET /admin/v1/projects/${project.id}/providers/fcm`,
    status: 200,
    badQuery: "?x=1",
  },
  deleteFcmProvider: {
    route: ({ project }) => `DELETE /admin/v1/projects/${project.id}/providers/fcm`,
    status: 204,
    badQuery: "?x=1",
  },
  testFcmProvider: {
    route: ({ project }) => `POST /admin/v1/projects/${project.id}/providers/fcm/test`,
    status: 200,
    body: () => ({ token: "a-token" }),
    bad: { token: "a b" },
  },
  putWebPushProvider: {
    route: ({ project }) => `PUT /admin/v1/projects/${project.id}/providers/webpush`,
    status: 200,
    body: () => ({ subject: "mailto:push@example.com" }),
    bad: { subject: "push@example.com" },
  },
  getWebPushProvider: {
    route: ({ project }) => `GET /admin/v1/projects/${project.id}/providers/webpush`,
    status: 200,
    badQuery: "?x=1",
  },
  deleteWebPushProvider: {
    route: ({ project }) => `DELETE /admin/v1/projects/${project.id}/providers/webpush`,
    status: 204,
    badQuery: "?x=1",
  },
  testWebPushProvider: {
    route: ({ project }) => `POST /admin/v1/projects/${project.id}/providers/webpush/test`,
    status: 200,
    body: () => ({ token: "https://push.example/one", keys: { p256dh: "B".repeat(87), auth: "A".repeat(22) } }),
    bad: { token: "a b" },
  },
  getWebPushKey: {
    route: ({ project }) => `GET /api/v1/webpush-key?project_id=${project.id}`,
    status: 200,
    badQuery: "&x=1",
  },
  listVapidKeys: {
    route: ({ project }) => `GET /admin/v1/projects/${project.id}/providers/webpush/keys`,
    status: 200,
    badQuery: "?x=1",
  },
  stageVapidKey: {
    route: ({ project }) => `POST /admin/v1/projects/${project.id}/providers/webpush/keys`,
    status: 200,
    body: () => ({}),
    bad: { key: { public_key: "alone" } },
  },
  changeVapidKey: {
    route: (world) => `PATCH /admin/v1/projects/${world.project.id}/providers/webpush/keys/${world.nextKey}`,
    status: 200,
    body: () => ({ key: { status: "current" } }),
    bad: { key: { status: "earlier" } },
  },
  retireVapidKey: {
    route: (world) => `DELETE /admin/v1/projects/${world.project.id}/providers/webpush/keys/${world.nextKey}`,
    status: 200,
    badQuery: "?force=yes",
  },
  listProjectLimits: {
    route: ({ project }) => `GET /admin/v1/projects/${project.id}/limits`,
    status: 200,
    badQuery: "?x=1",
  },
  getStatus: { route: () => "GET /admin/v1/status", status: 200, badQuery: "?service=dispatch" },
  listDeadLetters: { route: () => "GET /admin/v1/dead-letters", status: 200, badQuery: "?durable=unknown" },
  getDeadLetter: {
    route: ({ deadLetter }) => `GET /admin/v1/dead-letters/${deadLetter}`,
    status: 200,
    badQuery: "?body=1",
  },
  replayDeadLetter: {
    route: ({ deadLetter }) => `POST /admin/v1/dead-letters/${deadLetter}/replay`,
    status: 202,
    bad: { force: true },
  },
  replayDeadLetters: {
    route: () => "POST /admin/v1/dead-letters/replay",
    status: 200,
    body: ({ deadLetter }) => ({ dead_letters: [deadLetter] }),
    bad: { dead_letters: [] },
  },
};
