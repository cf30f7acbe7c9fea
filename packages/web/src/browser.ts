import type { PendingReport } from "./state.ts";

export const isSupported = (): boolean =>
  isSecureContext && "serviceWorker" in navigator && "PushManager" in self && "Notification" in self;

export const browserPermission = (): NotificationPermission | "unsupported" =>
  isSupported() ? Notification.permission : "unsupported";

/** The worker's registration, if it has one. */
export const workerOf = (script: string): Promise<ServiceWorkerRegistration | undefined> =>
  navigator.serviceWorker.getRegistration(new URL(".", new URL(script, location.href)));

/** Registers or updates the worker, and waits until it is active: subscribing needs an active worker. */
export const activeWorker = async (script: string): Promise<ServiceWorkerRegistration> => {
  const registration = await navigator.serviceWorker.register(script);
  const next = registration.installing ?? registration.waiting;
  if (!registration.active && next)
    await new Promise<void>((resolve) => {
      next.onstatechange = () => {
        if (next.state === "activated" || next.state === "redundant") resolve();
      };
    });
  return registration;
};

/** Closes Herald's notifications that this browser shows. */
export const closeShown = async (registration: ServiceWorkerRegistration | undefined): Promise<void> => {
  for (const shown of (await registration?.getNotifications()) ?? []) if (shown.data?.notification_id) shown.close();
};

/** What a declarative push adds to the address of the page that its click opens. */
const mark = /([?#&])herald=(ntf_[0-9a-z]{26})\.([\w.-]+)(&?)/;

/** Takes the open out of the page's address: Safari shows some pushes without the worker, and a click on one opens the page directly. */
export const takeOpenFromAddress = (project: string): PendingReport | undefined => {
  const [, before, notification, token, after] = mark.exec(location.href) ?? [];
  if (!notification || !token) return undefined;
  const rest = location.href.replace(mark, before === "?" && after ? "?" : (after ?? ""));
  history.replaceState(history.state, "", rest);
  return { notification, project, token, verb: "open", at: Date.now() };
};
