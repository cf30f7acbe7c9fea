/// <reference lib="webworker" />
import { parsedJson } from "../call.ts";
import { register } from "../register.ts";
import { exclusively, readState, writeState } from "../state.ts";
import type { PushButton, PushPayload } from "../wire.ts";
import { flushReports, ignore, report } from "./reports.ts";

declare const self: ServiceWorkerGlobalScope & {
  heraldWorker: { readonly click: typeof click; readonly dismiss: typeof dismiss };
};

/** False if the user has logged out or unsubscribed, or if the push was sent to a former device of this browser. */
const isForThisUser = async ({ token }: PushPayload): Promise<boolean | undefined> => {
  const state = await readState().catch(ignore);
  // The browser's storage was cleared, but the push arrived, so the subscription is valid.
  if (!state) return true;
  const { wanted, loggingOut, device } = state;
  return wanted && !loggingOut && (device === undefined || String(token).split(".")[2] === device);
};

const show = async ({ notification, app_badge, ...rest }: PushPayload): Promise<void> => {
  if (typeof app_badge === "number") await navigator.setAppBadge?.(app_badge).catch(ignore);
  if (typeof notification !== "object" || notification === null) return;
  const { title = "", body, tag, ...options } = notification;
  const plain = { body: body ?? "", tag: tag ?? "", data: rest };
  await self.registration
    .showNotification(String(title), { ...options, ...plain })
    // If the browser rejects an option, show title and body without it.
    .catch(() => self.registration.showNotification(String(title), plain));
};

const pages = () => self.clients.matchAll({ type: "window", includeUncontrolled: true });

const receive = async (text: string | undefined): Promise<void> => {
  const payload: PushPayload | undefined = parsedJson(text);
  // The push of another sender: the app may import this worker into its own.
  if (typeof payload?.notification_id !== "string" || !(await isForThisUser(payload))) return;
  for (const page of await pages()) page.postMessage({ herald: "push", payload });
  await show(payload);
  const { receipt } = payload;
  if (payload.notification && typeof receipt === "number") await report("received", payload, { seconds: receipt });
  else await flushReports();
};

/** The URL of a link; the worker's scope if a browser should not open the link. */
const pageOf = (link: unknown): string => {
  const { scope } = self.registration;
  try {
    const url = new URL(String(link ?? ""), scope);
    const isOwn = url.origin === new URL(scope).origin;
    // A path stays in the app; only an absolute http(s) URL leads to another site.
    if (isOwn || /^https?:\/\//i.test(String(link))) return url.href;
  } catch {}
  return scope;
};

const openPage = async (link: unknown): Promise<unknown> => {
  const page = pageOf(link);
  const open = await pages();
  const found = open.find(({ url }) => url === page) ?? (link ? undefined : open[0]);
  return found ? found.focus() : self.clients.openWindow(page);
};

const isHeralds = ({ data }: Notification): boolean => typeof data?.notification_id === "string";

/**
 * Handles a click on a notification or on its button `action`: opens its link, or focuses the tab that shows it, and reports the open to
 * Herald.
 */
const click = async (notification: Notification, action = ""): Promise<void> => {
  if (!isHeralds(notification)) return;
  const { data } = notification;
  const pressed = data.buttons?.find?.(({ id }: PushButton) => id === action);
  notification.close();
  await Promise.allSettled([
    pressed?.opens === false ? undefined : openPage(pressed?.link_to ?? data.link_to),
    report("open", data, pressed && { button: pressed.id }),
  ]);
};

/** Reports that the user closed a notification, if Herald asked for its receipt. */
const dismiss = async (notification: Notification): Promise<void> => {
  if (isHeralds(notification) && typeof notification.data.receipt === "number")
    await report("dismissed", notification.data);
};

/** Registers a subscription that the browser has replaced. If that fails, the next page that starts the kit registers it. */
const subscribeAgain = () =>
  exclusively(async () => {
    const state = await readState();
    if (state?.wanted) await writeState(await register(self.registration, state));
  }).catch(ignore);

const on = <Type extends keyof ServiceWorkerGlobalScopeEventMap>(
  type: Type,
  work: (event: ServiceWorkerGlobalScopeEventMap[Type]) => unknown,
): void =>
  self.addEventListener(type, (event) => (event as ExtendableEvent).waitUntil(work(event) as Promise<unknown>));

self.heraldWorker = { click, dismiss };
on("push", ({ data }) => receive(data?.text()));
on("notificationclick", ({ notification, action }) => click(notification, action));
on("notificationclose", ({ notification }) => dismiss(notification));
on("pushsubscriptionchange", subscribeAgain);
on("activate", () => flushReports());
on(
  "sync" as "activate",
  (event) => (event as ExtendableEvent & { tag: string }).tag === "herald" && flushReports({ throws: true }),
);
