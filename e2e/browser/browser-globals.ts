/** Types of browser globals that tests use: Node's types lack them, and some functions of the tests run in the browser. */

export type Shown = { readonly title: string; readonly body: string; readonly data: Record<string, unknown> };

type ServiceWorkerRegistration = {
  showNotification(title: string, options: unknown): Promise<void>;
  getNotifications(): Promise<Shown[]>;
};

type PushSubscription = { readonly endpoint: string; readonly options: object; toJSON(): object };

type PushManager = {
  getSubscription(): Promise<PushSubscription | null>;
  subscribe(options: { readonly applicationServerKey: string }): Promise<PushSubscription | null>;
};

type ExtendableEvent = Event & { waitUntil(work: Promise<unknown>): void };

/** The globals of the kit's service worker. */
export type WorkerScope = EventTarget & {
  /** Titles of shown notifications, which the test records. */
  showed?: string[];
  readonly registration: ServiceWorkerRegistration;
  readonly ServiceWorkerRegistration: { readonly prototype: ServiceWorkerRegistration };
  readonly PushManager: { readonly prototype: PushManager };
  readonly ExtendableEvent: new (type: string) => ExtendableEvent;
  readonly clients: { openWindow(url: string): Promise<unknown> };
  readonly WindowClient: { readonly prototype: { focus(this: { readonly url: string }): Promise<unknown> } };
  readonly heraldWorker: {
    click(notification: Shown | undefined, action?: string): Promise<unknown>;
    dismiss(notification: Shown | undefined): Promise<unknown>;
  };
};

/** The globals of a page, or of a worker before the push service is replaced. */
export type PageScope = {
  readonly PushManager?: { readonly prototype: PushManager };
  readonly Notification: { readonly permission: string };
  readonly DOMException: new (message: string, name: string) => Error;
  readonly atob: (text: string) => string;
  readonly indexedDB: { deleteDatabase(name: string): { onsuccess: (() => void) | null } };
};

/** The status of the kit, which the example site shows. */
export type Status = {
  permission: string;
  subscribed: boolean;
  device: string;
  user: string | null;
  topics: string[];
  pending: boolean;
  problem: { slug: string } | null;
};
