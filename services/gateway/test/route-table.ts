import { randomUUID } from "node:crypto";
import { adminTable } from "./admin-route-table.ts";
import { apnsToken } from "./gateway-fixture.ts";
import type { Case } from "./route-case.ts";

export const newDevice = () => ({ device: { token: apnsToken(), platform: "ios" } });
/** Of all devices. */
export const newActivity = () => ({
  activity: {
    ...{ attributes_type: "Order", attributes: {}, content_state: { minutes: 40 }, targets: ["all"] },
    alert: { title: "Your order", body: "It is packed." },
  },
});
const query = "?page=0";
const pushKitToken = "ab".repeat(32);

/** Every route, by its operation id: a valid call, and an invalid one. */
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
  getRecipients: {
    route: ({ recipientsId }) => `GET /api/v1/notifications/${recipientsId}/recipients`,
    status: 200,
    badQuery: "?verbose=1",
  },
  listRecipientErrors: {
    route: ({ recipientsId }) => `GET /api/v1/notifications/${recipientsId}/recipients/errors`,
    status: 200,
    badQuery: query,
  },
  uploadRecipients: {
    route: ({ recipientsId }) => `PUT /api/v1/notifications/${recipientsId}/recipients`,
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
  getDevicePreferences: {
    route: ({ device: { id } }) => `GET /api/v1/devices/${id}/preferences`,
    status: 200,
    badQuery: "?verbose=1",
  },
  putDevicePreferences: {
    route: ({ device: { id } }) => `PUT /api/v1/devices/${id}/preferences`,
    status: 200,
    body: () => ({ preferences: { kinds: { news: false } } }),
    bad: { preferences: { kinds: { News: false } } },
  },
  getUserPreferences: { route: () => "GET /api/v1/users/u_1/preferences", status: 200, badQuery: "?q", foreign: 200 },
  putUserPreferences: {
    route: () => "PUT /api/v1/users/u_1/preferences",
    status: 200,
    body: () => ({ preferences: { kinds: { news: false }, quiet_hours: { from: "22:00", to: "07:00" } } }),
    bad: { preferences: { kinds: {}, quiet_hours: { from: "22:00", to: "22:00" } } },
    foreign: 200,
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
  listTemplates: { route: () => "GET /api/v1/templates", status: 200, badQuery: "?per_page=101", foreign: 200 },
  getTemplate: {
    route: ({ template }) => `GET /api/v1/templates/${template}`,
    status: 200,
    badQuery: "?version=0",
  },
  putTemplate: {
    // A name of its own, so that a stranger's template does not stand for the world's.
    route: ({ template }) => `PUT /api/v1/templates/${template}-more`,
    status: 201,
    body: () => ({ template: { title: "Hi {{ name }}", variables: { name: { type: "string", fallback: "friend" } } } }),
    bad: { template: { title: "Hi {{ nmae }}" } },
    foreign: 201,
  },
  publishTemplate: {
    route: ({ template }) => `POST /api/v1/templates/${template}/publish`,
    status: 200,
    bad: { version: 1 },
  },
  listTemplateVersions: {
    route: ({ template }) => `GET /api/v1/templates/${template}/versions`,
    status: 200,
    badQuery: "?page=0",
  },
  previewTemplate: {
    route: ({ template }) => `POST /api/v1/templates/${template}/preview`,
    status: 200,
    body: () => ({ preview: { variables: { name: "Ann" } } }),
    bad: { preview: { variables: { nmae: "Ann" } } },
  },
  deleteTemplate: {
    route: ({ template }) => `DELETE /api/v1/templates/${template}`,
    status: 204,
    bad: { force: true },
  },
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
  putDeviceToken: {
    route: (world) => `PUT /api/v1/devices/${world.device.id}/tokens/voip`,
    status: 204,
    body: () => ({ token: { token: pushKitToken } }),
    bad: { token: { token: "not hexadecimal" } },
  },
  deleteDeviceToken: {
    route: (world) => `DELETE /api/v1/devices/${world.device.id}/tokens/voip`,
    status: 204,
    bad: { devices: [1] },
  },
  putControlToken: {
    route: (world) => `PUT /api/v1/devices/${world.device.id}/tokens/controls/gate`,
    status: 204,
    body: () => ({ token: { token: pushKitToken, environment: "sandbox" } }),
    bad: { token: {} },
  },
  deleteControlToken: {
    route: (world) => `DELETE /api/v1/devices/${world.device.id}/tokens/controls/gate`,
    status: 204,
    bad: { devices: [1] },
  },
  putActivity: {
    route: () => `PUT /api/v1/activities/order-${randomUUID()}`,
    status: 202,
    body: newActivity,
    bad: { activity: { ...newActivity().activity, alert: undefined } },
    foreign: 202,
  },
  patchActivity: {
    route: ({ activity }) => `PATCH /api/v1/activities/${activity}`,
    status: 202,
    body: () => ({ activity: { content_state: { minutes: 12 } } }),
    bad: { activity: { content_state: 12 } },
  },
  endActivity: {
    route: ({ activity }) => `POST /api/v1/activities/${activity}/end`,
    status: 202,
    body: () => ({ activity: {} }),
    bad: { activity: { dismiss_at: "soon" } },
  },
  getActivity: {
    route: ({ activity }) => `GET /api/v1/activities/${activity}`,
    status: 200,
    badQuery: "?x=1",
  },
  getDeviceActivity: {
    route: ({ device, activity }) => `GET /api/v1/devices/${device.id}/activities/${activity}`,
    status: 200,
    badQuery: "?x=1",
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
  changeNotification: {
    route: ({ notification }) => `PATCH /api/v1/notifications/${notification.id}`,
    status: 200,
    body: () => ({ notification: { ttl: 60 } }),
    bad: { notification: { title: "Hello" } },
  },
  pauseNotification: {
    route: ({ notification }) => `POST /api/v1/notifications/${notification.id}/pause`,
    status: 200,
    body: () => ({ reason: "a wrong link" }),
    bad: { reason: "" },
  },
  resumeNotification: {
    route: ({ notification }) => `POST /api/v1/notifications/${notification.id}/resume`,
    status: 200,
    bad: { reason: "none" },
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
  notificationReceived: {
    route: ({ notification }) => `PUT /api/v1/notifications/${notification.id}/received`,
    status: 204,
    body: ({ project, openToken }) => ({ project_id: project.id, token: openToken, ago: 60 }),
    bad: { project_id: { $ne: null }, token: { $gt: "" }, ago: -1 },
  },
  notificationDismissed: {
    route: ({ notification }) => `PUT /api/v1/notifications/${notification.id}/dismissed`,
    status: 204,
    body: ({ project, openToken }) => ({ project_id: project.id, token: openToken }),
    bad: { project_id: [], token: "", ago: 1.5 },
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
  exportReceipts: { route: () => "GET /api/v1/exports/receipts", status: 200, badQuery: "?after=x", foreign: 200 },
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
  getWebPushKey: {
    route: ({ project }) => `GET /api/v1/webpush-key?project_id=${project.id}`,
    needs: ["nextKey"],
    status: 200,
    badQuery: "&x=1",
  },
  ...adminTable,
};
