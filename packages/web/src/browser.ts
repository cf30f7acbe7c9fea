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
