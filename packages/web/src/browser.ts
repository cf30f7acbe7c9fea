export const isSupported = (): boolean =>
  isSecureContext && "serviceWorker" in navigator && "PushManager" in self && "Notification" in self;

export const browserPermission = (): NotificationPermission | "unsupported" =>
  isSupported() ? Notification.permission : "unsupported";

/** The worker's registration where there is one. */
export const workerOf = (script: string): Promise<ServiceWorkerRegistration | undefined> =>
  navigator.serviceWorker.getRegistration(new URL(".", new URL(script, location.href)));

/** Registers the worker, or looks for a newer one, and waits until it can be subscribed with. */
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

/** Takes away what was shown to somebody who is not there any more. */
export const closeShown = async (registration: ServiceWorkerRegistration | undefined): Promise<void> => {
  for (const shown of (await registration?.getNotifications()) ?? []) if (shown.data?.notification_id) shown.close();
};
