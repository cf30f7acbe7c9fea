import { randomBytes } from "node:crypto";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Readable } from "node:stream";
import { Herald, type NewNotification } from "@herald/client";
import type { LocalFile } from "./data-folder.ts";
import type { DemoClock } from "./demo-clock.ts";
import { callSimulators } from "./demo-project.ts";

/** Enough devices for lists with several pages and for charts with visible bars. */
export const demoDevices = 240;
const together = 8;
const settledWithinMs = 30_000;

export const historyHours = 24;
const hourMs = 3_600_000;

/** Tokens with this prefix and a group number belong to devices that the simulators can report as uninstalled. */
const gonePrefixes = { ios: "dead", android: "demo-gone-" };
/** After each interval of this many hours, one more group uninstalls its apps. */
const hoursPerGone = 5;
const goneGroups = 4;

type Push = { token: string; status: number | null; payload: unknown };

const platforms = ["ios", "android", "web"] as const;
/** Without `news`, to which the printed commands send. */
const topics = ["concerts", "offers", "orders"];

/** Campaigns by hours before now. */
const campaigns: Readonly<Record<number, { title: string; body: string; link_to?: string; targets: string[] }>> = {
  22: {
    title: "Three concerts near you",
    body: "Tickets are on sale from noon.",
    link_to: "/events",
    targets: ["topic:concerts"],
  },
  17: {
    title: "20 % off this weekend",
    body: "On everything in your list.",
    link_to: "/offers",
    targets: ["topic:offers"],
  },
  13: { title: "Welcome to pro", body: "Three things to try first.", targets: ["metadata:plan=pro"] },
  9: { title: "We have moved", body: "Same shop, more room: Canal Street 12.", targets: ["all"] },
  4: { title: "Last hours of the sale", body: "It ends at midnight.", link_to: "/offers", targets: ["topic:offers"] },
  1: {
    title: "Doors open at 7",
    body: "Bring your ticket. It is under Orders.",
    link_to: "/events/17",
    targets: ["topic:concerts"],
  },
};

const orderNews = [
  { title: "Your order has shipped", body: "It arrives tomorrow before noon." },
  { title: "Your order arrives today", body: "Between 2 and 4 in the afternoon." },
  { title: "Ready for pickup", body: "Bring the code that is under Orders." },
  { title: "Your refund is on its way", body: "It takes two or three days." },
];

const userId = (index: number) => `u_${String(index % 90).padStart(3, "0")}`;

/** Each hour a few users get news of their orders. */
const ordersOf = (hour: number) => ({
  ...orderNews[hour % orderNews.length],
  link_to: "/orders/42",
  targets: Array.from({ length: 4 + ((hour * 5) % 7) }, (_, index) => `user:${userId(hour * 11 + index * 7)}`),
});

/** After how many hours people open a notification: most at once, some much later. */
const opensAfter = [0, 0, 0, 1, 0, 1, 2, 0, 3, 1, 5, 8];

/** Finds the fields of a push anywhere in its payload, because each provider puts them elsewhere. */
const openOf = ({ payload }: Push): { id: string; token: string } | undefined => {
  const text = JSON.stringify(payload);
  const id = /"notification_id":"([^"]+)"/.exec(text)?.[1];
  const token = /"token":"(v2\.[^"]+)"/.exec(text)?.[1];
  return id && token ? { id, token } : undefined;
};

const inParallel = <Item>(items: Iterable<Item>, work: (item: Item) => Promise<void>): Promise<void> =>
  Readable.from(items).forEach(work, { concurrency: together });

/**
 * Fills the demo project once: devices, topics, users, and a day of notifications with failures and opens. It uses the public API as an
 * app and its backend do, and moves the clock forward hour by hour.
 */
export async function makeDemoHistory(
  dataDir: string,
  { gateway, project, simulators }: LocalFile,
  clock: DemoClock | undefined,
  say: (line: string) => void,
): Promise<void> {
  const file = join(dataDir, "demo-history.json");
  const made = await readFile(file, "utf8").then(JSON.parse, () => undefined);
  if (made === project.id) return;
  say(
    `demo project: registering ${demoDevices} devices, making a history of ${historyHours} hours, half a minute, this once`,
  );

  const herald = new Herald({ url: gateway, token: project.token });
  /** Reports an open as an app does. */
  const open = async (id: string, token: string) => {
    const response = await fetch(`${gateway}/api/v1/notifications/${id}/open`, {
      method: "PUT",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ project_id: project.id, token }),
    });
    if (!response.ok) throw new Error(`an open was answered ${response.status}: ${await response.text()}`);
  };
  const control = <Answer>(route: string, body?: unknown) => callSimulators<Answer>(simulators.control, route, body);
  const tokenOf = async (platform: (typeof platforms)[number], index: number) => {
    const group = index % 17 === 3 ? index % goneGroups : undefined;
    const prefix = (here: string, gone: string) => (group === undefined ? here : gone + group);
    const random = randomBytes(90);
    if (platform === "ios")
      return { token: `${prefix("a11ce", gonePrefixes.ios)}${random.toString("hex")}`.slice(0, 64) };
    if (platform === "android")
      return { token: `${prefix("demo-here-", gonePrefixes.android)}${random.toString("base64url")}` };
    type Subscription = { endpoint: string; keys: { p256dh: string; auth: string } };
    const { endpoint, keys } = await control<Subscription>("POST /webpush/subscriptions", {});
    return { token: endpoint, keys };
  };

  await inParallel(Array(demoDevices).keys(), async (index) => {
    const platform = platforms[index % 5 < 2 ? 0 : index % 5 < 4 ? 1 : 2] ?? "ios";
    await herald.devices.register({
      ...(await tokenOf(platform, index)),
      platform,
      topics: topics.filter((_topic, at) => index % (at + 2) === 0),
      user_id: index % 4 === 3 ? null : userId(index),
      metadata: { plan: index % 6 === 0 ? "pro" : "free" },
      identifiers: { current_locale: ["en", "de", "es", "fr"][index % 4], app_version: `3.${index % 5}.0` },
    });
  });

  const { rules } = await control<{ rules: { used?: number }[] }>("GET /script");
  const before = rules.map(({ used: _, ...rule }) => rule);
  const uninstall = (groups: number) =>
    control("PUT /script", [
      ...Array.from({ length: groups }, (_, group) => [
        { provider: "apns", tokenPrefix: gonePrefixes.ios + group, status: 410 },
        { provider: "fcm", tokenPrefix: gonePrefixes.android + group, status: 404 },
      ]).flat(),
      ...before,
    ]);
  const send = async (notification: NewNotification) => {
    const sent = await herald.notifications.send(notification);
    // A notification that takes longer keeps its current status.
    await sent.completed({ signal: AbortSignal.timeout(settledWithinMs) }).catch(() => undefined);
  };

  const opens = new Map<number, { id: string; token: string }[]>();
  let seen = 0;
  type Pushes = { data: Push[]; next: string };
  let { next: cursor } = await control<Pushes>("GET /pushes");
  for (let hour = historyHours - 1; hour >= 0; hour--) {
    // Half past each hour, so that the last hour's notifications are half an hour old.
    await clock?.set(hour * hourMs + hourMs / 2);
    await uninstall(Math.min(goneGroups, Math.floor((historyHours - hour) / hoursPerGone)));
    const campaign = campaigns[hour];
    await Promise.all([send(ordersOf(hour)), campaign && send(campaign)]);
    const answer = await control<Pushes>(`GET /pushes?since=${cursor}`);
    cursor = answer.next;
    for (const push of answer.data) {
      const found = push.status !== null && push.status < 300 ? openOf(push) : undefined;
      if (!found || seen++ % 7 > 2) continue;
      const at = Math.max(0, hour - (opensAfter[seen % opensAfter.length] ?? 0));
      opens.set(at, [...(opens.get(at) ?? []), found]);
    }
    await inParallel(opens.get(hour) ?? [], ({ id, token }) => open(id, token));
  }
  await control("PUT /script", before);
  // The simulators then show only the user's own pushes.
  await control("DELETE /pushes");
  await writeFile(file, JSON.stringify(project.id));
}
