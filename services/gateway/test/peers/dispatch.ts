import type { Bucket } from "@herald/bus";
import {
  type Approval,
  deliveryRequests,
  type Notification,
  notificationRequests,
  type PageOf,
  type ProjectId,
  type ProvidersRecord,
  type ProviderView,
  projectProvidersKey,
  providerRequests,
  type Recipients,
  recipientRequests,
  replayRequests,
  type TokenId,
} from "@herald/contracts";
import { HeraldError } from "@herald/kit";
import { serveVapidKeys } from "./dispatch-vapid-keys.ts";
import type { Devices } from "./registry-devices.ts";
import { at, exportPage, type Owned, owned, pageOf, rows, type Serve } from "./rows.ts";

/** As if the notification had been proposed. */
const asProposed = ({ approval }: Notification): Approval => {
  const sender = { id: "tok_06bq4ghm31tz5d2ns8y7k9w0ac" as TokenId };
  return approval ?? { status: "proposed", limit: 1_000, devices: 5_000, sender, expires_at: at() };
};

export type Notifications = Map<string, Owned<Notification>>;

const noRecipients: Recipients = {
  kind: "user",
  lines_stored: 0,
  recipients: 0,
  processed: 0,
  refused: 0,
  duplicates: 0,
  unmatched: 0,
  errors_left_out: 0,
  complete: false,
};

/** Dispatch's notifications, each accepted by every device of its project, and its provider settings. */
export const serveDispatch = (
  serve: Serve,
  {
    notifications,
    devices,
    providerBucket,
    settled,
  }: {
    notifications: Notifications;
    devices: Devices;
    providerBucket: Bucket<ProvidersRecord>;
    /** By the id of a notification or batch: why a replay of its message would change nothing. */
    settled: ReadonlyMap<string, string>;
  },
): void => {
  const providers = new Map<string, Owned<ProviderView>>();

  serve(notificationRequests.list, ({ projectId, page }) => pageOf(rows(notifications, projectId), page));
  serve(
    notificationRequests.get,
    (data) => owned(notifications, data, data.notificationId, "notification-not-found").value,
  );
  serve(recipientRequests.get, (data) => {
    owned(notifications, data, data.notificationId, "notification-not-found");
    return { recipients: noRecipients, texts: { values: {} } };
  });
  serve(recipientRequests.errors, (data) => {
    owned(notifications, data, data.notificationId, "notification-not-found");
    return pageOf([], data.page);
  });
  serve(
    notificationRequests.change,
    (data) => owned(notifications, data, data.notificationId, "notification-not-found").value,
  );
  serve(notificationRequests.cancel, (data) => {
    const found = owned(notifications, data, data.notificationId, "notification-not-found");
    if (found.value.status === "completed") throw new HeraldError("notification-final", "id: it is completed");
    found.value = { ...found.value, status: "cancelled" };
    return found.value;
  });
  const unfinished = (data: { projectId: ProjectId; notificationId: string }) => {
    const found = owned(notifications, data, data.notificationId, "notification-not-found");
    if (found.value.status === "completed") throw new HeraldError("notification-final", "id: it is completed");
    return found;
  };
  serve(notificationRequests.pause, (data) => {
    const found = unfinished(data);
    const { by, reason } = data;
    found.value = { ...found.value, status: "paused", paused: { at: at(), by, ...(reason && { reason }) } };
    return found.value;
  });
  serve(notificationRequests.resume, (data) => {
    const found = unfinished(data);
    const { paused: _, ...value } = found.value;
    found.value = { ...value, status: "accepted" };
    return found.value;
  });
  serve(notificationRequests.approve, (data) => {
    const found = unfinished(data);
    const { by, reason } = data;
    const approval = {
      ...asProposed(found.value),
      status: "approved" as const,
      by,
      at: at(),
      ...(reason && { reason }),
    };
    found.value = { ...found.value, status: "accepted", approval };
    return found.value;
  });
  serve(notificationRequests.reject, (data) => {
    const found = unfinished(data);
    const { by } = data;
    const approval = { ...asProposed(found.value), status: "rejected" as const, by, at: at() };
    found.value = { ...found.value, status: "cancelled", approval };
    return found.value;
  });
  serve(notificationRequests.export, (data) => exportPage(rows(notifications, data.projectId), data));
  serve(deliveryRequests.export, (data) => {
    if (data.notificationId) owned(notifications, data, data.notificationId, "notification-not-found");
    return { rows: [], next: null };
  });
  serve(deliveryRequests.list, (data) => {
    owned(notifications, data, data.notificationId, "notification-not-found");
    const sent = rows(devices, data.projectId).map((device) => ({ ...device, device_id: device.id }));
    const { data: shown, ...rest } = pageOf(sent, data.page);
    const all = shown.map(({ device_id, platform }) => ({
      device_id,
      platform,
      status: "accepted" as const,
      attempts: 1,
      possible_repeat: false,
      at: at(),
    }));
    const wanted = all.filter(({ status }) => data.status === undefined || status === data.status);
    return { ...rest, data: wanted } as PageOf<(typeof wanted)[number]>;
  });
  serve(deliveryRequests.ofDevice, ({ projectId, deviceId }) => {
    const device = rows(devices, projectId).find(({ id }) => id === deviceId);
    const sent = device ? rows(notifications, projectId).toReversed() : [];
    const data = sent.map(({ id, status, title, body, created_at }) => ({
      notification: { id, status, title, body, created_at },
      platform: device?.platform ?? "ios",
      status: "accepted" as const,
      attempts: 1,
      possible_repeat: false,
      at: at(),
    }));
    return { data, next: null };
  });
  serve(replayRequests.check, ({ notificationId, batchId }) => {
    const why = settled.get(batchId ?? notificationId);
    return why === undefined ? {} : { settled: why };
  });
  serve(deliveryRequests.trace, (data) => {
    const notification = owned(notifications, data, data.notificationId, "notification-not-found").value;
    const device = rows(devices, data.projectId).find(({ id }) => id === data.deviceId);
    if (device?.status !== "active") return { notification, expanded: true, attempts: [] };
    const known = { attempts: 1, possible_repeat: false, at: at() };
    return {
      notification,
      expanded: true,
      delivery: { device_id: device.id, platform: device.platform, status: "accepted" as const, ...known },
      attempts: [{ ...known, attempt: 1, outcome: "accepted" as const }],
    };
  });
  const providerKey = (data: { projectId: ProjectId; provider: string }) => `${data.projectId}/${data.provider}`;
  const saveProviders = async (projectId: ProjectId): Promise<void> => {
    const all = rows(providers, projectId).map(({ provider }) => provider);
    await providerBucket.put(projectProvidersKey(projectId), { providers: all, ...vapidKeys.published(projectId) });
  };
  const vapidKeys = serveVapidKeys(serve, saveProviders);
  serve(providerRequests.put, async (data) => {
    const { projectId, provider } = data;
    const view = { provider, settings: { provider }, status: "active" as const, updated_at: at() };
    providers.set(providerKey(data), { projectId, value: view });
    if (provider === "webpush") vapidKeys.begin(projectId);
    await saveProviders(projectId);
    return view;
  });
  serve(providerRequests.get, (data) => owned(providers, data, providerKey(data), "provider-not-found").value);
  serve(providerRequests.test, (data) => {
    owned(providers, data, providerKey(data), "provider-not-found");
    return { result: "accepted" as const, detail: "The provider accepted the push." };
  });
  serve(providerRequests.delete, async (data) => {
    owned(providers, data, providerKey(data), "provider-not-found");
    providers.delete(providerKey(data));
    if (data.provider === "webpush") vapidKeys.end(data.projectId);
    await saveProviders(data.projectId);
    return {};
  });
};
